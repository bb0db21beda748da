// Package mlx5 is a verbs.Testbed over the machine's own RDMA devices: cases and loads
// speak to libibverbs, whatever provider is below it, and where the device is an mlx5
// to mlx5 direct verbs too. Its code needs cgo and rdma-core's headers and is built
// with the tag hw only; every layout comes from those headers.
//
// A thread is a goroutine locked to an operating system thread, its clock is
// CLOCK_MONOTONIC. Memory is mapped memory. Another process is this program started
// again, which receives the commands of package player through a pipe. A call that does not
// return cannot be undone: the testbed then says which one it was, and that its process
// needs a restart.
package mlx5
