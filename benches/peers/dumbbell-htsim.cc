// A dumbbell of bulk NewReno flows through one tail-drop queue, for htsim.
//
//   dumbbell-htsim n=64 mbps=100 buf=300 duration=40
//
// prints one line of JSON. The network is that of row h of the benchmark: flow i has the access delay
// i mod 4, and acknowledgements return with a delay and without a queue. Access links have no rate here,
// and nothing is measured but the packets and drops at the bottleneck.
//
//   n         bulk flows
//   mbps      rate of the bottleneck, Mbit/s
//   buf       limit of its queue, packets
//   duration  s
//   seed      of the starts

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

namespace {

std::map<std::string, double> parameters = {
    {"n", 64}, {"mbps", 100}, {"buf", 300}, {"duration", 40}, {"seed", 1}};

// Sizes and times of redtail's scenario.
const int packet_size = 1500;
const double access_ms[] = {2, 4, 6, 8};
const double bottleneck_ms = 20;
const double last_start_s = 0.1;

// A queue that counts the packets that it has sent.
class CountingQueue : public Queue {
  public:
    using Queue::Queue;
    uint64_t sent = 0;

  protected:
    void completeService() override {
        ++sent;
        Queue::completeService();
    }
};

bool read(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const size_t equals = argument.find('=');
        const std::string key = argument.substr(0, equals);
        if (equals == std::string::npos || parameters.count(key) == 0) {
            std::cerr << "dumbbell-htsim: cannot use \"" << argument << "\"; accepted, as key=value:";
            for (const auto& parameter : parameters) std::cerr << ' ' << parameter.first;
            std::cerr << '\n';
            return false;
        }
        parameters[key] = std::atof(argument.c_str() + equals + 1);
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (!read(argc, argv)) return 2;
    srand(static_cast<unsigned>(parameters["seed"]));
    EventList events;
    events.setEndtime(timeFromSec(parameters["duration"]));
    Packet::set_packet_size(packet_size);

    CountingQueue bottleneck(speedFromMbps(parameters["mbps"]),
                             memFromPkt(parameters["buf"]), events, nullptr);
    Pipe wire(timeFromMs(bottleneck_ms), events);
    Pipe back(timeFromMs(bottleneck_ms), events);
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    // htsim prints what it does on standard output, which is for the result.
    std::streambuf* output = std::cout.rdbuf(nullptr);
    Pipe* access[4];
    for (int host = 0; host < 4; ++host)
        access[host] = new Pipe(timeFromMs(access_ms[host]), events);
    for (int i = 0; i < static_cast<int>(parameters["n"]); ++i) {
        auto* sender = new TcpSrc(nullptr, nullptr, events);
        auto* receiver = new TcpSink();
        timers.registerTcp(*sender);
        auto* out = new route_t();
        for (PacketSink* next : {static_cast<PacketSink*>(access[i % 4]),
                                 static_cast<PacketSink*>(&bottleneck),
                                 static_cast<PacketSink*>(&wire),
                                 static_cast<PacketSink*>(receiver)})
            out->push_back(next);
        auto* in = new route_t();
        in->push_back(&back);
        in->push_back(sender);
        sender->connect(*out, *in, *receiver, timeFromSec(last_start_s * drand()));
    }
    while (events.doNextEvent()) {
    }
    std::cout.rdbuf(output);
    std::cout << "{\"bottleneck_packets_total\": " << bottleneck.sent
              << ", \"drops\": " << bottleneck.num_drops() << "}" << std::endl;
    return 0;
}
