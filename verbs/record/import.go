package record

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

func (p *process) importer() (verbs.Importer, error) {
	if i, ok := p.Process.(verbs.Importer); ok {
		return i, nil
	}
	return nil, fmt.Errorf("import on this target: %w", syscall.EOPNOTSUPP)
}

// DupCommandFD passes through where the inner process can import. The numbers of descriptors
// are the process's own affair.
func (p *process) DupCommandFD(t verbs.Thread, c verbs.Context) (int, error) {
	i, err := p.importer()
	if err != nil {
		return -1, err
	}
	if x, ok := c.(*context); ok {
		c = x.Context
	}
	fd, err := i.DupCommandFD(innerThread(t), c)
	p.r.add(t, "dup", nil, err)
	return fd, err
}

// OpenNull passes through likewise.
func (p *process) OpenNull(t verbs.Thread) (int, error) {
	i, err := p.importer()
	if err != nil {
		return -1, err
	}
	return i.OpenNull(innerThread(t))
}

// CloseFD passes through likewise.
func (p *process) CloseFD(t verbs.Thread, fd int) error {
	i, err := p.importer()
	if err != nil {
		return err
	}
	return i.CloseFD(innerThread(t), fd)
}

// ImportDevice passes through likewise.
func (p *process) ImportDevice(t verbs.Thread, fd int) (verbs.Context, error) {
	i, err := p.importer()
	if err != nil {
		return nil, err
	}
	c, err := i.ImportDevice(innerThread(t), fd)
	p.r.add(t, "import_device", nil, err)
	if err != nil {
		return nil, err
	}
	d := wrap(p.r, c.Device(), func() *device { return &device{c.Device(), p.r} })
	return wrap(p.r, c, func() *context { return &context{c, d, p.r} }), nil
}

func (c *context) ImportPD(t verbs.Thread, handle uint32) (verbs.PD, error) {
	p, err := c.Context.ImportPD(innerThread(t), handle)
	c.r.add(t, "import_pd", nil, err)
	if err != nil {
		return nil, err
	}
	return wrap(c.r, p, func() *pd { return &pd{p, c} }), nil
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
