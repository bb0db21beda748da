package mem

import "testing"

// BenchmarkLazyFault is a page that comes with a write, and goes with a discard.
func BenchmarkLazyFault(b *testing.B) {
	const pages = 1024
	s := NewSpace(New(1 << 30))
	va, err := s.MapWith(pages*PageSize, MapOptions{Prot: Read | Write, Lazy: true})
	if err != nil {
		b.Fatal(err)
	}
	out := make([]Frame, 1)
	for i := range b.N {
		at := va + VA(i%pages)*PageSize
		if err := s.Range(at, PageSize, RangeWrite, out); err != nil {
			b.Fatal(err)
		}
		if i%pages == pages-1 {
			if err := s.Discard(va, pages*PageSize); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkSwap is a page that comes from swap while another goes there.
func BenchmarkSwap(b *testing.B) {
	const pages = 1024
	s := NewSpace(New(1 << 30))
	s.m.SetPaging(pages/2*PageSize, 1<<30)
	va, err := s.MapWith(pages*PageSize, MapOptions{Prot: Read | Write, Lazy: true})
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		if err := s.WriteAt([]byte{byte(i)}, va+VA(i%pages)*PageSize); err != nil {
			b.Fatal(err)
		}
	}
}
