# Web sessions through one tail-drop queue, with ns-2.35's own model of them, PagePool/WebTraf.
#
#   ns web.tcl sessions=1200 seed=3 duration=500
#
# prints one line of JSON. The network is that of dumbbell.tcl, the distributions are those of
# redtail's model "feldmann": Pareto 1 of Feldmann et al. 1999, table 1.
#
#   sessions  users
#   buf       limit of the queue, packets
#   seed      of everything random
#   duration  s

array set param {sessions 1200 buf 300 seed 1 duration 500}
foreach arg $argv {
    if {![regexp {^([a-z]+)=(.+)$} $arg -> key value] || ![info exists param($key)]} {
        puts stderr "web.tcl: cannot use \"$arg\"; accepted, as key=value: [lsort [array names param]]"
        exit 2
    }
    set param($key) $value
}

set payload 1460
set size_packets [expr {12000.0 / $payload}] ;# ns-2 draws sizes in packets, and rounds up

Agent/TCP set window_ 1000000
Agent/TCP set windowInit_ 2
Agent/TCP set packetSize_ $payload
Agent/TCP set singledup_ 1
Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.001
PagePool/WebTraf set TCPTYPE_ Sack1
PagePool/WebTraf set TCPSINKTYPE_ TCPSink/Sack1

$defaultRNG seed $param(seed)
set ns [new Simulator]
set starts [new RNG]
$starts seed [expr {$param(seed) + 7919}]

proc roomy_link {from to delay} {
    global ns
    $ns simplex-link $from $to 100Mb $delay DropTail
    $ns queue-limit $from $to 1000000
}

# Clients on the right ask servers on the left.
set pool [new PagePool/WebTraf]
$pool set-num-server 4
$pool set-num-client 4
set left [$ns node]
set right [$ns node]
foreach i {0 1 2 3} delay {20ms 40ms 60ms 80ms} {
    set server [$ns node]
    set client [$ns node]
    roomy_link $server $left $delay
    roomy_link $left $server 0.1ms
    roomy_link $right $client 0.1ms
    roomy_link $client $right 0.1ms
    $pool set-server $i $server
    $pool set-client $i $client
}
$ns simplex-link $right $left 100Mb 50ms DropTail
$ns queue-limit $right $left 1000000
$ns simplex-link $left $right 10Mb 50ms DropTail
$ns queue-limit $left $right $param(buf)
set monitor [$ns monitor-queue $left $right ""]

proc pareto {mean shape} {
    set law [new RandomVariable/Pareto]
    $law set avg_ $mean
    $law set shape_ $shape
    return $law
}

set inter_page [pareto 50 2]
set page_size [pareto 4 1.2]
set inter_object [pareto 0.5 1.5]
set object_size [pareto $size_packets 1.2]
# A page takes 25 s at the least.
set pages [expr {int($param(duration) / 25) + 2}]
$pool set-num-session $param(sessions)
for {set i 0} {$i < $param(sessions)} {incr i} {
    $pool create-session $i $pages [$starts uniform 0 50] \
        $inter_page $page_size $inter_object $object_size
}

# Four sources of constant rate, as in dumbbell.tcl.
for {set i 0} {$i < 4} {incr i} {
    set source [new Agent/UDP]
    $ns attach-agent $left $source
    set sink [new Agent/Null]
    $ns attach-agent $right $sink
    $ns connect $source $sink
    set cbr [new Application/Traffic/CBR]
    $cbr set rate_ 250Kb
    $cbr set packetSize_ 573
    $cbr set random_ 1
    $cbr attach-agent $source
    $ns at [$starts uniform 0 10] "$cbr start"
}

proc finish {} {
    global monitor param
    set bytes [$monitor set bdepartures_]
    set arrivals [$monitor set parrivals_]
    set loss [expr {$arrivals > 0 ? double([$monitor set pdrops_]) / $arrivals : 0.0}]
    puts [format {{"util_mbps": %.6f, "loss": %.6f, "bottleneck_packets_total": %d}} \
        [expr {$bytes * 8 / $param(duration) / 1e6}] $loss \
        [expr {int([$monitor set pdepartures_])}]]
    exit 0
}
$ns at $param(duration) finish
$ns run
