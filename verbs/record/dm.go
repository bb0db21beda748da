package record

import "github.com/rdmasim/rdmasim/verbs"

type dm struct {
	verbs.DM
	r *Recorder
}

func (c *context) AllocDM(t verbs.Thread, a verbs.DMAttr) (verbs.DM, error) {
	m, err := c.Context.AllocDM(innerThread(t), a)
	return made(c.r, t, "alloc_dm", list(a.Length, a.LogAlign, mask(a.CompMask)), err,
		func() (verbs.DM, []string) { return c.r.dm(m), nil })
}

func (m *dm) CopyTo(t verbs.Thread, off uint64, p []byte) error {
	return m.r.add(t, "memcpy_to_dm", list(off, len(p)), m.DM.CopyTo(innerThread(t), off, p))
}

func (m *dm) CopyFrom(t verbs.Thread, p []byte, off uint64) error {
	return m.r.add(t, "memcpy_from_dm", list(off, len(p)), m.DM.CopyFrom(innerThread(t), p, off))
}

func (m *dm) Free(t verbs.Thread) error {
	return m.r.add(t, "free_dm", nil, m.DM.Free(innerThread(t)))
}

func (p *pd) RegDMMR(t verbs.Thread, d verbs.DM, off, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	m, err := p.PD.RegDMMR(innerThread(t), bare(d), off, length, access)
	return p.c.r.mr(t, "reg_dm_mr", m, err, list(off, length, mask(access)))
}
