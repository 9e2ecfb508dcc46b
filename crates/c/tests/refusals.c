/* Calls that cannot be done. It prints "done" when each did nothing. */
#include <stdio.h>
#include <string.h>

#include "redtail.h"

#define CHECK(what)                                      \
    do {                                                 \
        if (!(what)) {                                   \
            printf("line %d: %s\n", __LINE__, #what);    \
            return 0;                                    \
        }                                                \
    } while (0)

int main(void)
{
    char error[8] = "aaaaaaa";
    redtail_packet packet = {7, 1000, 0, REDTAIL_ECT1, 46};
    redtail_packet bad = packet;
    uint64_t at;
    redtail_bottleneck *bottleneck;

    /* A reason that does not fit is cut, and one for which there is no room is not written. */
    CHECK(redtail_new("codel", 1000, 0, 1, error, sizeof error) == NULL);
    CHECK(strlen(error) == sizeof error - 1 && memcmp(error, "\"codel\"", 7) == 0);
    CHECK(redtail_new(NULL, 1000, 0, 1, error, 1) == NULL && error[0] == 0);
    CHECK(redtail_new("{ kind = \"codel\" }", 0, 0, 1, NULL, 0) == NULL);
    CHECK(redtail_new("\xff", 1000, 0, 1, NULL, 100) == NULL);

    bottleneck = redtail_new("{ kind = \"codel\" }", 8000, 5, 1, error, sizeof error);
    CHECK(bottleneck != NULL);
    bad.ecn = 4;
    CHECK(!redtail_send(bottleneck, &bad, 0));
    bad.ecn = 0;
    bad.dscp = 64;
    CHECK(!redtail_send(bottleneck, &bad, 0));
    CHECK(!redtail_send(bottleneck, NULL, 0) && !redtail_send(NULL, &packet, 0));
    CHECK(!redtail_receive(NULL, &packet, 0) && !redtail_receive(bottleneck, NULL, 0));
    CHECK(!redtail_dropped(NULL, &packet) && !redtail_dropped(bottleneck, NULL));
    CHECK(!redtail_next_event(NULL, &at) && !redtail_next_event(bottleneck, NULL));
    CHECK(!redtail_next_event(bottleneck, &at) && !redtail_dropped(bottleneck, &bad));

    /* 1000 B at 8 kbit/s take a second. */
    CHECK(redtail_send(bottleneck, &packet, 0) && redtail_next_event(bottleneck, &at));
    CHECK(at == UINT64_C(1000000005) && !redtail_receive(bottleneck, &bad, at - 1));
    CHECK(redtail_receive(bottleneck, &bad, at) && memcmp(&bad, &packet, sizeof bad) == 0);
    CHECK(!redtail_receive(bottleneck, &bad, at));
    redtail_free(bottleneck);
    redtail_free(NULL);
    printf("done\n");
    return 0;
}
