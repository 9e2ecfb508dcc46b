/* Twelve datagrams at once through a bottleneck whose queue holds eight. The datagrams stay in the program. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redtail.h"

#define MS UINT64_C(1000000)

static const char *const QUEUE = "{ kind = \"tail-drop\", limit = \"8 packets\" }";

int main(void)
{
    char error[200];
    char datagrams[12][1250];
    uint64_t now;
    redtail_packet packet;
    redtail_bottleneck *bottleneck =
        redtail_new(QUEUE, 10 * 1000 * 1000, 20 * MS, 1, error, sizeof error);
    if (bottleneck == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    for (uint64_t i = 0; i < 12; i++) {
        snprintf(datagrams[i], sizeof datagrams[i], "datagram %" PRIu64, i);
        memset(&packet, 0, sizeof packet);
        packet.handle = i;
        packet.size = sizeof datagrams[i];
        packet.ecn = REDTAIL_ECT0;
        redtail_send(bottleneck, &packet, 0);
        while (redtail_dropped(bottleneck, &packet))
            printf("%s was dropped\n", datagrams[packet.handle]);
    }
    while (redtail_next_event(bottleneck, &now))
        while (redtail_receive(bottleneck, &packet, now))
            printf("%s after %" PRIu64 " ms\n", datagrams[packet.handle], now / MS);
    redtail_free(bottleneck);

    if (redtail_new("{ kind = \"codel\", target = 5 }", 1000, 0, 1, error, sizeof error) == NULL)
        printf("refused: %s\n", error);
    return 0;
}
