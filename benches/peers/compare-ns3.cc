// Bulk TCP flows through one queue in ns-3.37, to be compared with redtail.
//
//   compare-ns3 --tcp=sack --queue=codel --flows=16 --rules=rfc --seed=1
//
// prints one line of JSON. The network is that of compare_ns3.py's experiment file.
// What a queue disc sees is made to be what redtail's queue sees:
//   - the device takes one packet at a time (`--device=0`); as ns-3 comes, it holds one
//     more beside the one in transmission, which the queue disc no longer counts;
//   - rates are scaled by 1502/1500, since a frame has two bytes of PPP header.
//
// The TCPs are those of ns-3 unless `--rules` names rules of the RFCs that are to take the
// place of ns-3's: those of docs/explanation/ns3.md that can be put in by a subclass.
//   flight     ssthresh from the flight size (RFC 5681, equation 4)
//   exit       no growth by the acknowledgement that ends fast recovery (RFC 6582, RFC 6675)
//   friendly   CUBIC's Reno-friendly region (RFC 9438, section 4.3)
//   samples    Vegas is given round trips that are not smoothed
//   allowed    LEDBAT's ALLOWED_INCREASE (RFC 6817, section 2.4.2)
//   least      DCTCP's window is at least two segments
// `--rules=rfc` is all of them.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

using namespace ns3;

namespace
{

constexpr double kFrame = 1502.0 / 1500.0;
constexpr uint16_t kPort = 5000;

// What has happened so far; differences of two of these are the metrics.
struct Counters
{
    uint64_t departures{0};
    uint64_t bytes{0}; // IP and above
    uint64_t drops{0};
    uint64_t marks{0};
    uint64_t timeouts{0};
    uint64_t recoveries{0};
    uint64_t exits{0};       // acknowledgements that ended a recovery
    uint64_t exitGrowths{0}; // of these, those that left a larger window than ssthresh
    double share{0};         // sum over recoveries of ssthresh / flight size
    double area{0};          // packets x seconds
    double square{0};        // packets^2 x seconds
};

Counters g_now;
Counters g_before;
std::set<std::string> g_rules;
std::vector<uint64_t> g_received;
std::vector<uint64_t> g_receivedBefore;

bool
Rule(const char* name)
{
    return g_rules.count("rfc") > 0 || g_rules.count(name) > 0;
}

std::vector<std::string>
Split(const std::string& text)
{
    std::vector<std::string> items;
    std::stringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');)
    {
        items.push_back(item);
    }
    return items;
}

// A TCP of ns-3 that counts what it does, and follows the rules that are asked for.
template <class Base>
class Ruled : public Base
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("redtail::" + Base::GetTypeId().GetName())
                                .SetParent(Base::GetTypeId())
                                .template AddConstructor<Ruled<Base>>();
        return tid;
    }

    Ruled() = default;
    Ruled(const Ruled& other) = default;

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Ruled<Base>>(this);
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t pipe) override
    {
        const uint32_t flight = tcb->m_highTxMark.Get() - tcb->m_lastAckedSeq;
        // RFC 5681, equation 4: FlightSize is what is not acknowledged cumulatively; what
        // limited transmit sent beyond the window does not count (section 3.2, step 2).
        const uint32_t share = Rule("flight") ? std::min(flight, tcb->m_cWnd.Get()) : pipe;
        uint32_t threshold = Base::GetSsThresh(tcb, share);
        if (std::is_same_v<Base, TcpDctcp> && Rule("least"))
        {
            threshold = std::max(threshold, 2 * tcb->m_segmentSize);
        }
        if (tcb->m_congState == TcpSocketState::CA_RECOVERY && flight > 0)
        {
            g_now.share += double(threshold) / std::min(flight, tcb->m_cWnd.Get());
        }
        m_estimate = double(threshold) / tcb->m_segmentSize;
        m_prior = std::max(m_prior, double(tcb->m_cWnd.Get()) / tcb->m_segmentSize);
        return threshold;
    }

    void CongestionStateSet(Ptr<TcpSocketState> tcb,
                            const TcpSocketState::TcpCongState_t state) override
    {
        g_now.recoveries += state == TcpSocketState::CA_RECOVERY;
        g_now.timeouts += state == TcpSocketState::CA_LOSS;
        Base::CongestionStateSet(tcb, state);
    }

    void CwndEvent(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCAEvent_t event) override
    {
        Base::CwndEvent(tcb, event);
        m_exiting = event == TcpSocketState::CA_EVENT_COMPLETE_CWR &&
                    tcb->m_congState == TcpSocketState::CA_RECOVERY;
    }

    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segments) override
    {
        const bool exiting = m_exiting;
        m_exiting = false;
        const uint32_t before = tcb->m_cWnd;
        if (!(exiting && Rule("exit")))
        {
            Grow(tcb, segments);
        }
        g_now.exits += exiting;
        g_now.exitGrowths += exiting && tcb->m_cWnd > before;
    }

    void PktsAcked(Ptr<TcpSocketState> tcb, uint32_t segments, const Time& smoothed) override
    {
        Time rtt = smoothed;
        if (std::is_same_v<Base, TcpVegas> && m_smoothed.IsStrictlyPositive() && Rule("samples"))
        {
            // RFC 6298, rule 2.3, solved for the sample: SRTT' = 7/8 SRTT + R/8.
            m_raw = smoothed == m_smoothed ? m_raw : Time(8 * smoothed - 7 * m_smoothed);
            rtt = m_raw;
        }
        else
        {
            m_raw = smoothed;
        }
        m_smoothed = smoothed;
        Base::PktsAcked(tcb, segments, rtt);
    }

  private:
    void Grow(Ptr<TcpSocketState> tcb, uint32_t segments)
    {
        const bool slowStart = tcb->m_cWnd < tcb->m_ssThresh;
        if (std::is_same_v<Base, TcpLedbat> && Rule("allowed"))
        {
            // RFC 6817, section 2.4.2: flightsize + ALLOWED_INCREASE * MSS; ns-3 computes
            // flightsize from the highest octet sent.
            const SequenceNumber32 sent = tcb->m_highTxMark;
            tcb->m_highTxMark = sent + tcb->m_segmentSize;
            Base::IncreaseWindow(tcb, segments);
            tcb->m_highTxMark = sent;
            return;
        }
        Base::IncreaseWindow(tcb, segments);
        if (std::is_same_v<Base, TcpCubic> && !slowStart && segments > 0 && Rule("friendly"))
        {
            // RFC 9438, section 4.3, with beta 0.7.
            constexpr double kBeta = 0.7;
            const double mss = tcb->m_segmentSize;
            const double alpha = m_estimate >= m_prior ? 1 : 3 * (1 - kBeta) / (1 + kBeta);
            m_estimate += alpha * segments / (tcb->m_cWnd / mss);
            const uint32_t friendly = uint32_t(m_estimate) * tcb->m_segmentSize;
            if (m_prior > 0 && tcb->m_cWnd < friendly)
            {
                tcb->m_cWnd = friendly;
            }
        }
    }

    bool m_exiting{false};
    double m_estimate{0}; // W_est, segments
    double m_prior{0};    // cwnd_prior, segments
    Time m_smoothed;
    Time m_raw;
};

// The time-weighted length of everything that waits.
int64_t g_waiting = 0;
double g_since = 0;

void
Integrate()
{
    const double now = Simulator::Now().GetSeconds();
    g_now.area += g_waiting * (now - g_since);
    g_now.square += double(g_waiting) * g_waiting * (now - g_since);
    g_since = now;
}

void
OnLength(uint32_t before, uint32_t after)
{
    Integrate();
    g_waiting += int64_t(after) - int64_t(before);
}

void
OnDrop(Ptr<const QueueDiscItem>)
{
    ++g_now.drops;
}

void
OnMark(Ptr<const QueueDiscItem>, const char*)
{
    ++g_now.marks;
}

Ptr<NetDeviceQueue> g_transmitter;

void
OnTransmissionBegins(Ptr<const Packet>)
{
    g_transmitter->Stop();
}

void
OnTransmissionEnds(bool oneAtATime, Ptr<const Packet> packet)
{
    ++g_now.departures;
    g_now.bytes += packet->GetSize() - 2; // less the PPP header
    if (oneAtATime)
    {
        g_transmitter->Wake();
    }
}

void
OnReceive(uint32_t flow, Ptr<const Packet> packet, const Address&)
{
    g_received[flow] += packet->GetSize();
}

TypeId
Tcp(const std::string& name)
{
    if (name == "newreno" || name == "sack")
    {
        return Ruled<TcpNewReno>::GetTypeId();
    }
    if (name == "cubic")
    {
        return Ruled<TcpCubic>::GetTypeId();
    }
    if (name == "vegas")
    {
        return Ruled<TcpVegas>::GetTypeId();
    }
    if (name == "ledbat")
    {
        return Ruled<TcpLedbat>::GetTypeId();
    }
    if (name == "dctcp")
    {
        return Ruled<TcpDctcp>::GetTypeId();
    }
    if (name == "bbr")
    {
        return Ruled<TcpBbr>::GetTypeId();
    }
    std::cerr << "compare-ns3: no tcp " << name << "\n";
    std::exit(2);
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string tcp = "sack";
    std::string other;
    std::string queue = "tail-drop";
    std::string rules = "none";
    std::string rtts = "40,60,80,100";
    uint32_t flows = 4;
    double rate = 10;
    uint32_t limit = 1000;
    double minTh = 20;
    double maxTh = 60;
    double randomLoss = 0;
    bool ecn = false;
    bool device = false;
    uint32_t guard = 1501;
    double duration = 60;
    double warmup = 20;
    double spread = 4;
    uint32_t seed = 1;

    CommandLine cmd(__FILE__);
    cmd.AddValue("tcp", "newreno, sack, cubic, vegas, ledbat, dctcp or bbr", tcp);
    cmd.AddValue("other", "TCP of the hosts with odd numbers, if another", other);
    cmd.AddValue("queue", "tail-drop, red, codel, fq-codel or pie", queue);
    cmd.AddValue("rules", "those of the RFCs to follow, or rfc for all", rules);
    cmd.AddValue("rtts", "ms, base round trip of each host's flows", rtts);
    cmd.AddValue("flows", "flow i starts on host i modulo their number", flows);
    cmd.AddValue("rate", "of the bottleneck, Mbit/s", rate);
    cmd.AddValue("limit", "of the queue, packets", limit);
    cmd.AddValue("minth", "RED, packets", minTh);
    cmd.AddValue("maxth", "RED, packets; as minth: every packet beyond it is marked", maxTh);
    cmd.AddValue("random-loss", "packets lost behind the queue, a fraction", randomLoss);
    cmd.AddValue("ecn", "on in the TCP and in the queue", ecn);
    cmd.AddValue("device", "let the device hold a packet, as ns-3 comes", device);
    cmd.AddValue("guard", "CoDel drops nothing with fewer bytes left", guard);
    cmd.AddValue("duration", "s", duration);
    cmd.AddValue("warmup", "s left out of the metrics", warmup);
    cmd.AddValue("spread", "s within which flows start", spread);
    cmd.AddValue("seed", "of everything random", seed);
    cmd.Parse(argc, argv);
    for (const auto& rule : Split(rules))
    {
        g_rules.insert(rule);
    }
    RngSeedManager::SetSeed(seed);

    const bool ledbat = tcp == "ledbat";
    const uint32_t payload = ledbat ? 1448 : 1460;
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(tcp != "newreno"));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(ledbat));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn",
                       EnumValue(ecn ? TcpSocketState::On : TcpSocketState::Off));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(payload));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(ledbat ? 2 : 10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4U << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4U << 20));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    // A connection that gave up would free its share of the link.
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(guard));
    Config::SetDefault("ns3::CoDelQueueDisc::UseEcn", BooleanValue(ecn));

    std::vector<double> bases;
    for (const auto& rtt : Split(rtts))
    {
        bases.push_back(std::stod(rtt));
    }
    const uint32_t hosts = bases.size();

    NodeContainer routers(2);
    NodeContainer senders(hosts);
    NodeContainer receivers(hosts);
    InternetStackHelper stack;
    stack.InstallAll();

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    TrafficControlHelper noQueueDisc;
    const auto join = [&](PointToPointHelper& link, Ptr<Node> from, Ptr<Node> to) {
        const NetDeviceContainer devices = link.Install(from, to);
        const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        noQueueDisc.Uninstall(devices); // assigning an address would put one there
        addresses.NewNetwork();
        return std::make_pair(devices, interfaces);
    };

    // A channel has one delay for both directions: each carries half of the round trip.
    constexpr double kBottleneckDelay = 1; // ms a round trip
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * 1e7 * kFrame))));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
    std::vector<Ipv4Address> destinations;
    for (uint32_t host = 0; host < hosts; ++host)
    {
        const double delay = (bases[host] - kBottleneckDelay) / 2;
        access.SetChannelAttribute("Delay", TimeValue(MicroSeconds(int64_t(delay * 1000))));
        join(access, senders.Get(host), routers.Get(0));
        access.SetChannelAttribute("Delay", TimeValue(Seconds(0)));
        destinations.push_back(
            join(access, routers.Get(1), receivers.Get(host)).second.GetAddress(1));
        const std::string name = host % 2 == 1 && !other.empty() ? other : tcp;
        senders.Get(host)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType",
                                                                    TypeIdValue(Tcp(name)));
        // The receiver's own algorithm is what DCTCP's feedback comes from.
        receivers.Get(host)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType",
                                                                      TypeIdValue(Tcp(name)));
    }

    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * 1e6 * kFrame))));
    bottleneck.SetChannelAttribute("Delay",
                                   TimeValue(MicroSeconds(int64_t(kBottleneckDelay * 500))));
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
    const NetDeviceContainer ends = join(bottleneck, routers.Get(0), routers.Get(1)).first;
    const auto forward = DynamicCast<PointToPointNetDevice>(ends.Get(0));
    const auto back = DynamicCast<PointToPointNetDevice>(ends.Get(1));
    back->SetAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * 1e7))));
    back->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, 1000000));

    if (randomLoss > 0)
    {
        const auto losses = CreateObject<RateErrorModel>();
        losses->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        losses->SetRate(randomLoss);
        back->SetReceiveErrorModel(losses);
    }

    const QueueSizeValue size(QueueSize(QueueSizeUnit::PACKETS, limit));
    TrafficControlHelper disc;
    if (queue == "tail-drop")
    {
        disc.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", size);
    }
    else if (queue == "red")
    {
        const bool step = minTh >= maxTh;
        disc.SetRootQueueDisc("ns3::RedQueueDisc",
                              "MaxSize", size,
                              "MinTh", DoubleValue(minTh),
                              "MaxTh", DoubleValue(maxTh),
                              "LInterm", DoubleValue(10),
                              "QW", DoubleValue(step ? 1 : 0.002),
                              "Gentle", BooleanValue(false),
                              "Wait", BooleanValue(true),
                              "UseEcn", BooleanValue(ecn),
                              "UseHardDrop", BooleanValue(!step),
                              "MeanPktSize", UintegerValue(1500),
                              "LinkBandwidth", DataRateValue(DataRate(uint64_t(rate * 1e6))));
    }
    else if (queue == "codel")
    {
        disc.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", size);
    }
    else if (queue == "fq-codel")
    {
        disc.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", size, "UseEcn", BooleanValue(ecn));
    }
    else if (queue == "pie")
    {
        disc.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", size, "UseEcn", BooleanValue(ecn));
    }
    else
    {
        std::cerr << "compare-ns3: no queue " << queue << "\n";
        return 2;
    }
    const Ptr<QueueDisc> root = disc.Install(forward).Get(0);
    root->TraceConnectWithoutContext("Drop", MakeCallback(&OnDrop));
    root->TraceConnectWithoutContext("Mark", MakeCallback(&OnMark));
    root->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&OnLength));
    forward->TraceConnectWithoutContext("PhyTxEnd", MakeBoundCallback(&OnTransmissionEnds, !device));
    g_transmitter = forward->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0);
    if (device)
    {
        forward->GetQueue()->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&OnLength));
    }
    else
    {
        forward->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&OnTransmissionBegins));
    }

    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const auto starts = CreateObject<UniformRandomVariable>();
    g_received.assign(flows, 0);
    g_receivedBefore.assign(flows, 0);
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        const uint32_t host = flow % hosts;
        const uint16_t port = kPort + flow;
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(receivers.Get(host))
            .Get(0)
            ->TraceConnectWithoutContext("Rx", MakeBoundCallback(&OnReceive, flow));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(destinations[host], port));
        bulk.SetAttribute("SendSize", UintegerValue(payload));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.Install(senders.Get(host)).Start(Seconds(starts->GetValue(0, spread)));
    }

    Simulator::Schedule(Seconds(warmup), [] {
        Integrate();
        g_before = g_now;
        g_receivedBefore = g_received;
    });
    Simulator::Stop(Seconds(duration));
    Simulator::Run();
    Integrate();

    const double span = duration - warmup;
    const auto since = [](uint64_t Counters::*what) { return double(g_now.*what - g_before.*what); };
    const double departures = since(&Counters::departures);
    const double drops = since(&Counters::drops);
    const double recoveries = since(&Counters::recoveries);
    const double exits = since(&Counters::exits);
    const double mean = (g_now.area - g_before.area) / span;
    const double square = (g_now.square - g_before.square) / span;
    double sum = 0;
    double squares = 0;
    double even = 0;
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        const double got = (g_received[flow] - g_receivedBefore[flow]) * 8 / span;
        sum += got;
        squares += got * got;
        even += flow % hosts % 2 == 0 ? got : 0;
    }
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0.0; };
    std::printf("{\"goodput\": %.1f, \"utilization\": %.6f, \"loss\": %.6f, \"mark\": %.6f, "
                "\"queue_length_mean\": %.4f, \"queue_length_std\": %.4f, \"fairness\": %.4f, "
                "\"even_share\": %.4f, \"timeouts\": %.0f, \"fast_recoveries\": %.0f, "
                "\"reduced_to\": %.4f, \"exits_that_grow\": %.4f}\n",
                sum,
                since(&Counters::bytes) * 8 / span / (rate * 1e6),
                ratio(drops, departures + drops),
                ratio(since(&Counters::marks), departures + drops),
                mean,
                std::sqrt(std::max(0.0, square - mean * mean)),
                ratio(sum * sum, flows * squares),
                ratio(even, sum),
                since(&Counters::timeouts),
                recoveries,
                ratio(g_now.share - g_before.share, recoveries),
                ratio(since(&Counters::exitGrowths), exits));
    Simulator::Destroy();
    return EXIT_SUCCESS;
}
