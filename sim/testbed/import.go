package testbed

import "github.com/rdmasim/rdmasim/verbs"

var (
	_ verbs.Importer   = (*process)(nil)
	_ verbs.FileOpener = (*process)(nil)
)

// OpenFile is open(2) in the folder of the host.
func (p *process) OpenFile(t verbs.Thread, name string, flags int) (int, error) {
	return p.lib.OpenFile(t, name, flags)
}

// RemoveFile is unlink(2).
func (p *process) RemoveFile(t verbs.Thread, name string) error { return p.lib.RemoveFile(t, name) }

// DupCommandFD duplicates the descriptor of a context's device file.
func (p *process) DupCommandFD(t verbs.Thread, c verbs.Context) (int, error) {
	return p.lib.DupCommandFD(t, c)
}

// OpenNull opens the null device.
func (p *process) OpenNull(t verbs.Thread) (int, error) { return p.lib.OpenNull(t) }

// CloseFD closes a descriptor.
func (p *process) CloseFD(t verbs.Thread, fd int) error { return p.lib.CloseFD(t, fd) }

// ImportDevice is ibv_import_device.
func (p *process) ImportDevice(t verbs.Thread, fd int) (verbs.Context, error) {
	return p.lib.ImportDevice(t, fd)
}
