package kernel

import "fmt"

// Dup is another descriptor of the context's file: Close is called once for each, and the last
// one ends the context.
func (u *Ucontext) Dup() { u.dups++ }

// QueryPD is PD_QUERY of mlx5, by which a library imports a PD. ENOENT, EINVAL: as lookup.
func (u *Ucontext) QueryPD(c Caller, h Handle) error {
	return u.do(c, func(*call) error {
		_, err := lookup[*pd](&u.objs, h, "PD")
		return err
	})
}

// QueryMR is QUERY_MR, by which a library imports a region.
func (u *Ucontext) QueryMR(c Caller, h Handle) (lkey, rkey uint32, length uint64, err error) {
	err = u.do(c, func(*call) error {
		m, err := lookup[*mr](&u.objs, h, "MR")
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		lkey, rkey, length = m.mkey, m.mkey, m.length()
		return nil
	})
	return lkey, rkey, length, err
}
