// A dumbbell of bulk TCP flows and constant-rate UDP through one queue, for ns-3.37.
//
//   dumbbell-ns3 --aqm=RED --tcp=Sack1 --udp=1 --n=64 --duration=30 --warmup=10 --seed=1
//
// prints one line of JSON. It is the network of dumbbell.tcl, so that the two
// peers are timed on the same work. Three things differ, none of which changes
// how many packets there are to move:
//   - ns-3's point-to-point channel has one delay for both directions, so each
//     carries half of the round trip; the round-trip times are the same;
//   - a TCP connection begins with its handshake;
//   - a frame has two bytes of PPP header.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

using namespace ns3;

namespace
{

constexpr uint32_t kHosts = 4;
constexpr uint32_t kPayload = 1460;
constexpr uint32_t kUdpHeaders = 28; // IPv4 and UDP

// UDP packets of one size whose gaps are drawn from half to one and a half
// times the nominal one, which ns-3's own on-off source does not offer.
class DitheredSource : public Application
{
  public:
    DitheredSource(Address peer, uint32_t wireBytes, DataRate rate, int64_t stream)
        : m_peer(peer),
          m_payload(wireBytes - kUdpHeaders),
          m_gap(rate.CalculateBytesTxTime(wireBytes).GetSeconds()),
          m_dither(CreateObject<UniformRandomVariable>())
    {
        m_dither->SetStream(stream);
    }

  private:
    void StartApplication() override
    {
        m_socket = Socket::CreateSocket(GetNode(), UdpSocketFactory::GetTypeId());
        m_socket->Bind();
        m_socket->Connect(m_peer);
        SendOne();
    }

    void StopApplication() override
    {
        m_next.Cancel();
    }

    void SendOne()
    {
        m_socket->Send(Create<Packet>(m_payload));
        const double gap = m_gap * m_dither->GetValue(0.5, 1.5);
        m_next = Simulator::Schedule(Seconds(gap), &DitheredSource::SendOne, this);
    }

    Address m_peer;
    uint32_t m_payload;
    double m_gap; // s
    Ptr<UniformRandomVariable> m_dither;
    Ptr<Socket> m_socket;
    EventId m_next;
};

// What has happened so far; differences of two of these are the metrics.
struct Counters
{
    uint64_t departures{0}; // packets that left the bottleneck
    uint64_t bytes{0};      // their bytes, IP and above
    uint64_t drops{0};      // packets its queue refused
    uint64_t received{0};   // payload bytes at the TCP receivers
};

Counters g_now;
Counters g_before;

void
OnDeparture(Ptr<const Packet> packet)
{
    ++g_now.departures;
    g_now.bytes += packet->GetSize() - 2; // less the PPP header
}

void
OnLayerDrop(Ptr<const Packet>)
{
    ++g_now.drops;
}

void
OnDiscDrop(Ptr<const QueueDiscItem>)
{
    ++g_now.drops;
}

void
OnReceive(Ptr<const Packet> packet, const Address&)
{
    g_now.received += packet->GetSize();
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string aqm = "RED";
    std::string tcp = "Sack1";
    uint32_t n = 64;
    uint32_t buf = 300;
    bool udp = true;
    double duration = 30;
    double warmup = 0;
    uint32_t seed = 1;

    CommandLine cmd(__FILE__);
    cmd.AddValue("aqm", "queue of the bottleneck: RED or DropTail", aqm);
    cmd.AddValue("tcp", "Sack1 or Newreno", tcp);
    cmd.AddValue("n", "bulk flows; flow i starts on host i mod 4", n);
    cmd.AddValue("buf", "limit of the queue, packets", buf);
    cmd.AddValue("udp", "four sources of 250 kbit/s, 573 B packets", udp);
    cmd.AddValue("duration", "s", duration);
    cmd.AddValue("warmup", "s left out of the metrics", warmup);
    cmd.AddValue("seed", "of everything random", seed);
    cmd.Parse(argc, argv);
    if ((aqm != "RED" && aqm != "DropTail") || (tcp != "Sack1" && tcp != "Newreno"))
    {
        std::cerr << "dumbbell-ns3: aqm is RED or DropTail, tcp is Sack1 or Newreno\n";
        return 2;
    }
    if (warmup >= duration)
    {
        warmup = 0;
    }

    RngSeedManager::SetSeed(seed);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(tcp == "Sack1"));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kPayload));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4U << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4U << 20));

    NodeContainer routers(2);
    NodeContainer senders(kHosts);
    NodeContainer receivers(kHosts);
    InternetStackHelper stack;
    stack.InstallAll();

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    TrafficControlHelper noQueueDisc;
    // Joins two nodes by a link, keeping clear of the queue discs that assigning
    // an address would otherwise put on it.
    const auto join = [&](PointToPointHelper& link, Ptr<Node> from, Ptr<Node> to) {
        const NetDeviceContainer devices = link.Install(from, to);
        const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        noQueueDisc.Uninstall(devices);
        addresses.NewNetwork();
        return std::make_pair(devices, interfaces);
    };

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
    constexpr std::array<double, kHosts> accessDelay{20, 40, 60, 80}; // ms, one way in dumbbell.tcl
    std::array<Ipv4Address, kHosts> receiverAddress;
    for (uint32_t host = 0; host < kHosts; ++host)
    {
        access.SetChannelAttribute("Delay",
                                   TimeValue(MicroSeconds((accessDelay[host] + 0.1) * 500)));
        join(access, senders.Get(host), routers.Get(0));
        access.SetChannelAttribute("Delay", TimeValue(MicroSeconds(100)));
        receiverAddress[host] =
            join(access, routers.Get(1), receivers.Get(host)).second.GetAddress(1);
    }

    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    bottleneck.SetChannelAttribute("Delay", TimeValue(MicroSeconds(50050)));
    const bool red = aqm == "RED";
    // Under a queue disc the device holds one packet, so that waiting is the disc's.
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>",
                        "MaxSize",
                        QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, red ? 1 : buf)));
    const NetDeviceContainer ends = join(bottleneck, routers.Get(0), routers.Get(1)).first;
    // The way back is wide: only the forward direction is a bottleneck.
    ends.Get(1)->SetAttribute("DataRate", StringValue("100Mbps"));
    const auto forward = DynamicCast<PointToPointNetDevice>(ends.Get(0));
    DynamicCast<PointToPointNetDevice>(ends.Get(1))
        ->GetQueue()
        ->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, 1000000));
    if (red)
    {
        TrafficControlHelper disc;
        disc.SetRootQueueDisc("ns3::RedQueueDisc",
                              "MaxSize",
                              QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, buf)),
                              "MinTh",
                              DoubleValue(45),
                              "MaxTh",
                              DoubleValue(195),
                              "LInterm",
                              DoubleValue(10),
                              "QW",
                              DoubleValue(0.002),
                              "Gentle",
                              BooleanValue(false),
                              "Wait",
                              BooleanValue(true),
                              "MeanPktSize",
                              UintegerValue(1500),
                              "LinkBandwidth",
                              StringValue("10Mbps"),
                              "LinkDelay",
                              StringValue("100ms"));
        const QueueDiscContainer discs = disc.Install(ends.Get(0));
        discs.Get(0)->TraceConnectWithoutContext("Drop", MakeCallback(&OnDiscDrop));
    }
    else
    {
        // A full device holds the traffic control layer off, which then drops.
        routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
            "TcDrop",
            MakeCallback(&OnLayerDrop));
    }
    forward->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&OnDeparture));

    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const auto starts = CreateObject<UniformRandomVariable>();
    constexpr uint16_t kTcpPort = 5000;
    for (uint32_t host = 0; host < kHosts; ++host)
    {
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), kTcpPort));
        const ApplicationContainer sinks = sink.Install(receivers.Get(host));
        sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&OnReceive));
        PacketSinkHelper udpSink("ns3::UdpSocketFactory",
                                 InetSocketAddress(Ipv4Address::GetAny(), kTcpPort));
        udpSink.Install(receivers.Get(host));
    }
    for (uint32_t i = 0; i < n; ++i)
    {
        BulkSendHelper bulk("ns3::TcpSocketFactory",
                            InetSocketAddress(receiverAddress[i % kHosts], kTcpPort));
        bulk.SetAttribute("SendSize", UintegerValue(kPayload));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.Install(senders.Get(i % kHosts)).Start(Seconds(starts->GetValue(0, 10)));
    }
    for (uint32_t i = 0; udp && i < kHosts; ++i)
    {
        const auto source =
            CreateObject<DitheredSource>(InetSocketAddress(receiverAddress[i], kTcpPort),
                                         573,
                                         DataRate("250kbps"),
                                         1000 + i);
        senders.Get(i)->AddApplication(source);
        source->SetStartTime(Seconds(starts->GetValue(0, 10)));
    }

    Simulator::Schedule(Seconds(warmup), [] { g_before = g_now; });
    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    const double span = duration - warmup;
    const uint64_t departures = g_now.departures - g_before.departures;
    const uint64_t drops = g_now.drops - g_before.drops;
    const uint64_t handled = departures + drops;
    std::printf("{\"goodput_mbps\": %.6f, \"util_mbps\": %.6f, \"loss\": %.6f, "
                "\"bottleneck_packets\": %llu, \"bottleneck_packets_total\": %llu}\n",
                (g_now.received - g_before.received) * 8 / span / 1e6,
                (g_now.bytes - g_before.bytes) * 8 / span / 1e6,
                handled > 0 ? double(drops) / double(handled) : 0.0,
                static_cast<unsigned long long>(departures),
                static_cast<unsigned long long>(g_now.departures));
    Simulator::Destroy();
    return EXIT_SUCCESS;
}
