package model

// Rules of the specification, by object.
var (
	ruleNoEvent = Rule{"an asynchronous event needs a cause", "man:ibv_get_async_event.3"}
	ruleLastWQE = Rule{"a queue pair with an SRQ that goes to ERR raises LAST_WQE_REACHED once", "man:ibv_get_async_event.3"}
	ruleLimit   = Rule{"an armed limit raises one event when fewer receives are left, and is then disarmed", "man:ibv_modify_srq.3"}

	ruleRegister = Rule{"remote write and remote atomic need local write", "man:ibv_reg_mr.3"}
	ruleDereg    = Rule{"a region without a window can be deregistered", "man:ibv_dereg_mr.3"}
	ruleRereg    = Rule{"ibv_rereg_mr changes the access and the PD of a region, by the rules of ibv_reg_mr", "man:ibv_rereg_mr.3.md"}
	ruleMove     = Rule{"ibv_rereg_mr moves a region to other memory, not to none", "man:ibv_rereg_mr.3.md; lib:verbs.c"}
	ruleAdvise   = Rule{"a range of a region on demand can be prefetched", "man:ibv_advise_mr.3.md; k:hw/mlx5/odp.c"}
	ruleWindow   = Rule{"a window can be allocated and deallocated", "man:ibv_alloc_mw.3"}
	ruleBind     = Rule{"a bind gives the window's key its range and rights, and fails outside a region that allows windows", "man:ibv_bind_mw.3; IBTA bind"}
	ruleMemory   = Rule{"memory changes only as completed requests say, and only inside a region that allows it", "IBTA R_Key check; man:ibv_post_send.3"}

	rulePostSend  = Rule{"a request is posted if the queue has room, and its SGEs and inline data are within what was granted", "man:ibv_post_send.3; p:mlx5/qp.c; p:rxe/rxe.c"}
	rulePostRecv  = Rule{"a receive is posted if the queue has room and its SGEs are within what was granted", "man:ibv_post_recv.3; p:mlx5/qp.c"}
	ruleModify    = Rule{"ibv_modify_qp takes the transitions and attributes of the table of states", "k:core/verbs.c qp_state_table"}
	ruleMostReads = Rule{"max_rd_atomic and max_dest_rd_atomic are at most what the device announces", "man:ibv_modify_qp.3; k:hw/mlx5/qp.c; k:sw/rxe/rxe_qp.c"}
	ruleQuery     = Rule{"ibv_query_qp returns what was set last, and the state", "man:ibv_query_qp.3"}
	ruleState     = Rule{"an error moves a queue pair to ERR (UC and UD senders: SQE or ERR), nothing else does", "IBTA error state; IBTA SQE state"}

	ruleSuccess     = Rule{"a request without a fault succeeds", "man:ibv_poll_cq.3"}
	ruleFlush       = Rule{"what is posted behind a failed request, or in ERR, is flushed in its order", "IBTA error state"}
	ruleInterrupted = Rule{"a request under way when its queue pair goes to ERR has succeeded or is flushed, and so are all behind a flushed one", "IBTA error state; man:ibv_modify_qp.3"}
	ruleLKey        = Rule{"a local key is of a region that covers the piece, with local write for what is written", "IBTA L_Key check"}
	ruleRKey        = Rule{"a remote key is of a region that covers the range and has the right; not checked without data", "IBTA R_Key check"}
	ruleRights      = Rule{"the responder's queue pair has the operation's right", "IBTA responder checks; t:test_atomic.py"}
	ruleAligned     = Rule{"an atomic's address is a multiple of 8", "t:test_atomic.py; p:rxe/rxe.c"}
	ruleRNR         = Rule{"a request without a receive ends with RNR_RETRY_EXC_ERR after its retries", "IBTA RNR NAK; man:ibv_modify_qp.3"}
	ruleRetry       = Rule{"a request that nobody answers ends with RETRY_EXC_ERR after its retries", "IBTA timeout; man:ibv_modify_qp.3"}
	ruleNamed       = Rule{"a request of an XRC connection that names no SRQ of the target's domain fails", "IBTA XRC; k:sw/rxe (proposal, linux-rdma 2021-07-30, 13/13)"}
	ruleTooLong     = Rule{"a message longer than its receive fails at both ends: REM_INV_REQ_ERR and LOC_LEN_ERR", "IBTA responder length check"}
	ruleRecvKey     = Rule{"a receive whose pieces fail their checks gives LOC_PROT_ERR, and REM_OP_ERR at the requester", "IBTA responder errors"}
	ruleUCDrop      = Rule{"a UC or UD message that the receiver cannot take is dropped, and its sender succeeds", "IBTA UC; IBTA UD responder"}
	ruleGroup       = Rule{"a UD queue pair joins a multicast group and leaves it, and gets what is sent to the group in between", "man:ibv_attach_mcast.3.md; k:core/verbs.c"}
	ruleReceived    = Rule{"a receive completes with the length, the immediate data and the operation of its message", "man:ibv_poll_cq.3"}

	ruleOrder     = Rule{"completions of a work queue come once each, in the order of posting", "IBTA work queue ordering; man:ibv_poll_cq.3"}
	ruleNone      = Rule{"a poll returns what has completed and was not polled, and nothing else", "man:ibv_poll_cq.3"}
	ruleResize    = Rule{"ibv_resize_cq grants at least the size asked for, keeps what waits, and fails if that does not fit", "man:ibv_resize_cq.3.md"}
	ruleCQEvent   = Rule{"an armed CQ gives one event for the next completion, solicited or failed if it was armed for those", "man:ibv_req_notify_cq.3.md; IBTA solicited event"}
	ruleModerate  = Rule{"ibv_modify_cq sets how many completions or microseconds an event may wait", "man:ibv_modify_cq.3"}
	ruleDestroyCQ = Rule{"a CQ without queue pairs can be destroyed, and takes its completions and events with it", "man:ibv_destroy_cq.3; k:core/uverbs_main.c ib_uverbs_release_ucq"}
	ruleDrained   = Rule{"a queue pair that goes to SQD and asks for it raises SQ_DRAINED when its sends have ended", "man:ibv_modify_qp.3; IBTA SQD state"}
	ruleSRQ       = Rule{"ibv_query_srq shows the limit, 0 when its event has come", "man:ibv_query_srq.3"}
	ruleSetSRQ    = Rule{"ibv_modify_srq arms a limit of at most max_wr", "man:ibv_modify_srq.3"}
)
