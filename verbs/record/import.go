package record

import "github.com/rdmasim/rdmasim/verbs"

const noImport = "import on this target"

// DupCommandFD passes through where the inner process can import. The numbers of descriptors
// are the process's own affair.
func (p *process) DupCommandFD(t verbs.Thread, c verbs.Context) (int, error) {
	return valueOn(p.Process, noImport, func(i verbs.Importer) (int, error) {
		fd, err := i.DupCommandFD(innerThread(t), bare(c))
		return fd, p.r.add(t, "dup", nil, err)
	})
}

// OpenNull passes through likewise.
func (p *process) OpenNull(t verbs.Thread) (int, error) {
	return valueOn(p.Process, noImport, func(i verbs.Importer) (int, error) { return i.OpenNull(innerThread(t)) })
}

// CloseFD passes through likewise.
func (p *process) CloseFD(t verbs.Thread, fd int) error {
	return on(p.Process, noImport, func(i verbs.Importer) error { return i.CloseFD(innerThread(t), fd) })
}

// ImportDevice passes through likewise.
func (p *process) ImportDevice(t verbs.Thread, fd int) (verbs.Context, error) {
	return valueOn(p.Process, noImport, func(i verbs.Importer) (verbs.Context, error) {
		c, err := i.ImportDevice(innerThread(t), fd)
		return made(p.r, t, "import_device", nil, err, func() (verbs.Context, []string) { return p.r.context(c), nil })
	})
}

func (c *context) ImportPD(t verbs.Thread, handle uint32) (verbs.PD, error) {
	p, err := c.Context.ImportPD(innerThread(t), handle)
	return made(c.r, t, "import_pd", nil, err, func() (verbs.PD, []string) { return c.pd(p), nil })
}

func (p *pd) Unimport(t verbs.Thread) error {
	return p.c.r.add(t, "unimport_pd", nil, p.PD.Unimport(innerThread(t)))
}

func (p *pd) ImportMR(t verbs.Thread, handle uint32) (verbs.MR, error) {
	m, err := p.PD.ImportMR(innerThread(t), handle)
	return p.c.r.mr(t, "import_mr", m, err, nil)
}

func (m *mr) Unimport(t verbs.Thread) error {
	return m.r.add(t, "unimport_mr", nil, m.MR.Unimport(innerThread(t)))
}
