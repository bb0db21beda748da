//go:build hw

package mlx5

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.CMFileOpener = (*process)(nil)

// cmPath is the device of rdma_cm's channels.
const cmPath = "/dev/infiniband/rdma_cm"

// cmFile is an open channel file.
type cmFile int

// OpenCMFile is open(2) of the channel device, as librdmacm opens it.
func (p *process) OpenCMFile(t verbs.Thread) (verbs.CMFile, error) {
	defer enterCall(t, "open "+cmPath).leaveCall()
	fd, err := unix.Open(cmPath, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", cmPath, err)
	}
	return cmFile(fd), nil
}

// Write is write(2).
func (f cmFile) Write(t verbs.Thread, command []byte) (int, error) {
	defer enterCall(t, "write of a command of rdma_cm").leaveCall()
	n, err := unix.Write(int(f), command)
	if err != nil {
		return 0, fmt.Errorf("write of a command of rdma_cm: %w", err)
	}
	return n, nil
}

// Close is close(2).
func (f cmFile) Close(t verbs.Thread) error {
	defer enterCall(t, "close of a channel file").leaveCall()
	return unix.Close(int(f))
}
