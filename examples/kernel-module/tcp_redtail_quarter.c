// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Reno that keeps a quarter of the window after a loss. */
#include <linux/module.h>
#include <net/tcp.h>

static u32 quarter_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd / 4, 2U);
}

static struct tcp_congestion_ops redtail_quarter = {
	.ssthresh = quarter_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "redtail_quarter",
};

static int __init quarter_register(void)
{
	return tcp_register_congestion_control(&redtail_quarter);
}

static void __exit quarter_unregister(void)
{
	tcp_unregister_congestion_control(&redtail_quarter);
}

module_init(quarter_register);
module_exit(quarter_unregister);

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Reno that keeps a quarter of the window after a loss");
