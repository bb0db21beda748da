// Package prm holds the byte formats of mlx5: what lies in host memory and in the
// device's registers. Work queue elements, completion and event queue elements,
// doorbell records, the map of a UAR page, command mailboxes and the contexts
// inside them.
//
// Each format is a view: a named byte slice with a getter and a setter for each
// field, which reads and writes the bytes themselves. Everything is big endian.
// A view does not check its length: whoever makes one from foreign bytes does so
// once (ParseSendWQE for WQEs, CheckCommand for commands, the size constants for
// the rest). A setter stores the low bits of its value that the field has room
// for and leaves the bits beside it alone.
//
// Layouts and numbers are those of Linux 6.12: include/linux/mlx5/mlx5_ifc.h,
// device.h, qp.h and cq.h, and of rdma-core's providers/mlx5. Names are theirs in
// Go spelling. The package knows formats only; what a device does with them is in
// sim/hca, and which bfreg a queue gets is in prm/bfreg.
//
// The tables in the folder layouts say where each field lies and which member of
// which C structure it is; go generate writes the views from them. What is not a
// field alone (lists, bits that lie apart, whole segments) is written by hand.
package prm

//go:generate go run ../internal/layout/layoutgen
