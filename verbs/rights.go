package verbs

// Dropper is implemented by processes that can give up privileges ("non-root").
type Dropper interface {
	// DropRights takes CAP_NET_RAW, CAP_IPC_LOCK and CAP_NET_BIND_SERVICE from the calling thread,
	// and lowers the process's limit on locked memory to memlock bytes (RLIMIT_MEMLOCK). Neither
	// can be regained. EINVAL: the limit is lower already.
	DropRights(t Thread, memlock uint64) error
}
