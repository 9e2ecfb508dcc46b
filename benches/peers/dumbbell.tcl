# A dumbbell of bulk TCP flows and constant-rate UDP through one queue, for ns-2.35.
#
#   ns dumbbell.tcl aqm=RED n=64 tcp=Sack1 seed=3 duration=200 warmup=50
#
# prints one line of JSON. redtail runs the same network itself, so the two can
# be laid side by side (agreement) and timed (speed). Every default below is the
# one redtail's reference scenarios use.
#
#   aqm       DropTail | RED              queue of the bottleneck
#   n         bulk flows; flow i starts on host i mod 4
#   buf       limit of the queue, packets
#   minth maxth maxp wq gentle adaptive   RED's parameters, packets and fractions
#   meanpkt   B, RED's pace of the average while idle
#   tcp       Sack1 | Newreno | Reno | Tahoe
#   ecn       1: ECN-capable flows, and RED marks where it would drop early
#   delack    1: one ACK for two segments, 100 ms timer
#   udp       1: four sources of 250 kbit/s, 573 B packets, gaps of 0.5 to 1.5 times nominal
#   seed      of everything random
#   duration  s; metrics cover warmup .. duration
#   sample    s between samples of the queue; 0 takes none (for timing runs)
#   scale     multiplies flows, sources, link rates, limit and thresholds alike

array set param {
    aqm DropTail n 64 buf 300 minth 45 maxth 195 maxp 0.1 wq 0.002 gentle 0 adaptive 0
    meanpkt 1500
    tcp Sack1 ecn 0 delack 0 udp 1 seed 1 duration 200 warmup 50 sample 0.01 scale 1
}
foreach arg $argv {
    if {![regexp {^([a-z]+)=(.+)$} $arg -> key value] || ![info exists param($key)]} {
        puts stderr "dumbbell.tcl: cannot use \"$arg\"; accepted, as key=value: [lsort [array names param]]"
        exit 2
    }
    set param($key) $value
}
if {$param(warmup) >= $param(duration)} {
    set param(warmup) 0
}

set bottleneck_mbps [expr {10 * $param(scale)}]
set access_mbps [expr {100 * $param(scale)}]
set flows [expr {$param(n) * $param(scale)}]
set sources [expr {$param(udp) ? 4 * $param(scale) : 0}]
set payload 1460

# The agents take their initial window and threshold from the class when they
# are made; setting these on an agent afterwards comes too late.
Agent/TCP set window_ 1000000 ;# no receive window, and no initial threshold
Agent/TCP set syn_ false ;# data from the first packet on
Agent/TCP set windowInit_ 2
Agent/TCP set packetSize_ $payload ;# 40 B of header are added on the wire
Agent/TCP set singledup_ 1
Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.001 ;# ns-2 reads the clock in ticks of 10 ms otherwise
Agent/TCP set ecn_ $param(ecn)

# By default ns-2's RED is gentle, counts bytes and chooses its own weight.
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set thresh_ [expr {$param(minth) * $param(scale)}]
Queue/RED set maxthresh_ [expr {$param(maxth) * $param(scale)}]
Queue/RED set linterm_ [expr {1.0 / $param(maxp)}]
Queue/RED set q_weight_ $param(wq)
Queue/RED set gentle_ $param(gentle)
Queue/RED set setbit_ $param(ecn)
Queue/RED set adaptive_ $param(adaptive)
Queue/RED set mean_pktsize_ $param(meanpkt) ;# here it only sets the pace of the average while idle

$defaultRNG seed $param(seed)
set ns [new Simulator]

# A stream of its own for the starts: the queue's draws cannot move them.
set starts [new RNG]
$starts seed [expr {$param(seed) + 7919}]

proc roomy_link {from to mbps delay} {
    global ns
    $ns simplex-link $from $to ${mbps}Mb $delay DropTail
    $ns queue-limit $from $to 1000000
}

set left [$ns node]
set right [$ns node]
set hosts 4
foreach i {0 1 2 3} delay {20ms 40ms 60ms 80ms} {
    set sender($i) [$ns node]
    set receiver($i) [$ns node]
    roomy_link $sender($i) $left $access_mbps $delay
    roomy_link $right $receiver($i) $access_mbps 0.1ms
    roomy_link $receiver($i) $right $access_mbps 0.1ms
    roomy_link $left $sender($i) $access_mbps 0.1ms
}
roomy_link $right $left $access_mbps 0.1ms
$ns simplex-link $left $right ${bottleneck_mbps}Mb 100ms $param(aqm)
$ns queue-limit $left $right [expr {$param(buf) * $param(scale)}]
set monitor [$ns monitor-queue $left $right ""]

# Plain TCPSink knows no SACK; only Sack1 gets the one that does.
set sink_class Agent/TCPSink
if {$param(tcp) eq "Sack1"} {
    append sink_class /Sack1
}
if {$param(delack)} {
    append sink_class /DelAck
}
set tcp_class Agent/TCP
if {$param(tcp) ne "Tahoe"} {
    append tcp_class /$param(tcp)
}

for {set i 0} {$i < $flows} {incr i} {
    set host [expr {$i % $hosts}]
    set tcp($i) [new $tcp_class]
    $ns attach-agent $sender($host) $tcp($i)
    set sink [new $sink_class]
    $ns attach-agent $receiver($host) $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$starts uniform 0 10] "$ftp start"
}
for {set i 0} {$i < $sources} {incr i} {
    set host [expr {$i % $hosts}]
    set source [new Agent/UDP]
    $ns attach-agent $sender($host) $source
    set meter($i) [new Agent/LossMonitor]
    $ns attach-agent $receiver($host) $meter($i)
    $ns connect $source $meter($i)
    set cbr [new Application/Traffic/CBR]
    $cbr set rate_ 250Kb
    $cbr set packetSize_ 573
    $cbr set random_ 1
    $cbr attach-agent $source
    $ns at [$starts uniform 0 10] "$cbr start"
}

# Counters as they stand now; differences of two such lists are the metrics.
proc counters {} {
    global monitor tcp flows meter sources
    set acked 0
    for {set i 0} {$i < $flows} {incr i} {
        incr acked [$tcp($i) set ack_]
    }
    set received 0
    set lost 0
    for {set i 0} {$i < $sources} {incr i} {
        incr received [$meter($i) set npkts_]
        incr lost [$meter($i) set nlost_]
    }
    list $acked [$monitor set bdepartures_] [$monitor set parrivals_] [$monitor set pdrops_] \
        $received $lost [$monitor set pdepartures_]
}

set samples 0
set sum 0.0
set sum_of_squares 0.0
proc sample {} {
    global ns monitor param samples sum sum_of_squares
    set waiting [$monitor set pkts_]
    incr samples
    set sum [expr {$sum + $waiting}]
    set sum_of_squares [expr {$sum_of_squares + double($waiting) * $waiting}]
    $ns at [expr {[$ns now] + $param(sample)}] sample
}

proc ratio {part whole} {
    expr {$whole > 0 ? double($part) / $whole : 0.0}
}

proc finish {} {
    global param before payload samples sum sum_of_squares
    set difference {}
    foreach then $before now [counters] {
        lappend difference [expr {$now - $then}]
    }
    foreach {acked bytes arrivals drops received lost departures} $difference break
    set span [expr {double($param(duration) - $param(warmup))}]
    set mean [ratio $sum $samples]
    set variance [expr {[ratio $sum_of_squares $samples] - $mean * $mean}]
    puts [format {{"goodput_mbps": %.6f, "util_mbps": %.6f, "loss": %.6f, "udp_loss": %.6f,\
        "q_mean": %.4f, "q_std": %.4f, "bottleneck_packets": %d, "bottleneck_packets_total": %d}} \
        [expr {$acked * $payload * 8 / $span / 1e6}] [expr {$bytes * 8 / $span / 1e6}] \
        [ratio $drops $arrivals] [ratio $lost [expr {$received + $lost}]] \
        $mean [expr {sqrt($variance > 0 ? $variance : 0)}] \
        [expr {int($departures)}] [expr {int([lindex [counters] end])}]]
    exit 0
}

proc start_measuring {} {
    global before param
    set before [counters]
    if {$param(sample) > 0} {
        sample
    }
}

$ns at $param(warmup) start_measuring
$ns at $param(duration) finish
$ns run
