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
	// Fork forks the process. Before Fork returns, the child fills its own view of the buffer with
	// value. end makes the child do so once more and exit, and waits for that.
	Fork(t Thread, b Buffer, value byte) (end func(t Thread) error, err error)
}
