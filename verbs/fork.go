package verbs

// ForkStatus is enum ibv_fork_status.
type ForkStatus uint32

// Statuses of fork support.
const (
	ForkDisabled ForkStatus = iota
	ForkEnabled
	ForkUnneeded // the kernel gives a forked child copies of pinned pages
)

var forkStatusNames = [...]string{"DISABLED", "ENABLED", "UNNEEDED"}

// String returns the name of IBV_FORK_* without the prefix.
func (s ForkStatus) String() string { return nameOf(forkStatusNames[:], s, "ForkStatus") }

// Forker is implemented by processes that can fork ("fork").
type Forker interface {
	// ForkInit is ibv_fork_init: EINVAL when memory is registered that a fork would copy on write.
	ForkInit(t Thread) error
	// IsForkInitialized is ibv_is_fork_initialized.
	IsForkInitialized(t Thread) (ForkStatus, error)
	// Fork forks the process. When it returns, the child has written value over the whole
	// buffer, as it sees it; it does so again, and ends, when end is called, and end returns
	// when it has.
	Fork(t Thread, b Buffer, value byte) (end func(t Thread) error, err error)
}
