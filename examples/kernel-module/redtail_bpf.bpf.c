// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Reno that keeps a quarter of the window after a loss, as a BPF object (struct_ops). */
typedef unsigned int u32;

#define SEC(name) __attribute__((section(name), used))

struct sock {
	char unused;
};

struct tcp_sock {
	u32 snd_cwnd;
} __attribute__((preserve_access_index));

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) SEC(".ksyms");
extern u32 tcp_reno_undo_cwnd(struct sock *sk) SEC(".ksyms");

SEC("struct_ops/quarter_ssthresh")
u32 quarter_ssthresh(unsigned long long *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	u32 quarter = tp->snd_cwnd / 4;

	return quarter < 2 ? 2 : quarter;
}

SEC("struct_ops/quarter_avoid")
void quarter_avoid(unsigned long long *arguments)
{
	tcp_reno_cong_avoid((struct sock *)arguments[0], arguments[1], arguments[2]);
}

SEC("struct_ops/quarter_undo")
u32 quarter_undo(unsigned long long *arguments)
{
	return tcp_reno_undo_cwnd((struct sock *)arguments[0]);
}

SEC(".struct_ops")
struct tcp_congestion_ops quarter = {
	.ssthresh = (void *)quarter_ssthresh,
	.cong_avoid = (void *)quarter_avoid,
	.undo_cwnd = (void *)quarter_undo,
	.name = "redtail_bpf",
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
