package kernel

import "fmt"

// Dup counts another descriptor of the context's file: Close is called once for each, and the last
// call ends the context.
func (u *Ucontext) Dup() { u.dups++ }

// QueryPD is mlx5's PD_QUERY, by which a library imports a PD. ENOENT, EINVAL: as lookup.
func (u *Ucontext) QueryPD(c Caller, h Handle) (pdn uint32, err error) {
	err = u.do(c, func(*call) error {
		p, err := lookup[*pd](&u.objs, h, "PD")
		if err != nil {
			return err
		}
		pdn = p.pdn
		return nil
	})
	return pdn, err
}

// QueryMR is QUERY_MR, by which a library imports a region.
func (u *Ucontext) QueryMR(c Caller, h Handle) (lkey, rkey uint32, length, iova uint64, err error) {
	err = u.do(c, func(*call) error {
		m, err := lookup[*mr](&u.objs, h, "MR")
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		lkey, rkey, length, iova = m.mkey, m.mkey, m.length(), m.iova
		return nil
	})
	return lkey, rkey, length, iova, err
}

// QueryDM is mlx5's DM_QUERY, by which a library imports device memory; length is the length that
// was asked for.
func (u *Ucontext) QueryDM(c Caller, h Handle) (m *DM, length uint64, err error) {
	err = u.do(c, func(*call) error {
		if m, err = lookup[*DM](&u.objs, h, "device memory"); err != nil {
			return fmt.Errorf("query: %w", err)
		}
		length = m.length
		return nil
	})
	return m, length, err
}
