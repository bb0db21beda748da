package prm

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/layout"
)

var update = flag.Bool("update", false, "write testdata/ifc.txt from the kernel's header")

// ifcRecord is what gcc said of the structures of mlx5_ifc.h when the record was made.
const ifcRecord = "testdata/ifc.txt"

// ifcMembers are the members of mlx5_ifc.h that the package lays out.
func ifcMembers(t *testing.T) []layout.Member {
	t.Helper()
	all := tables(t).Members("mlx5_ifc_")
	for _, c := range QCounterNames {
		all = append(all, layout.Member{Struct: "mlx5_ifc_query_q_counter_out_bits", Name: c.Name, Offset: 8 * int(c.Counter), Width: 32})
	}
	for _, c := range PortCounterNames {
		all = append(all, layout.Member{Struct: "mlx5_ifc_" + c.Struct + "_bits", Name: c.Name + "_high", Offset: 8 * int(c.Counter), Width: 32})
	}
	return all
}

// Offsets, widths and lengths are those of the kernel's structures, as they were recorded.
func TestTablesAgainstKernelRecord(t *testing.T) {
	file, err := os.Open(ifcRecord)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	recorded := map[[2]string]layout.Member{}
	for sc := bufio.NewScanner(file); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		var m layout.Member
		if _, err := fmt.Sscan(sc.Text(), &m.Struct, &m.Name, &m.Offset, &m.Width); err != nil {
			t.Fatal(sc.Text(), err)
		}
		m.Name = strings.TrimPrefix(m.Name, "-")
		recorded[[2]string{m.Struct, m.Name}] = m
	}
	compared := map[[2]string]bool{}
	for _, m := range ifcMembers(t) {
		key := [2]string{m.Struct, m.Name}
		if got, ok := recorded[key]; !ok || got != m {
			t.Errorf("the record says %v, we say %v (a new field: go test ./prm -run KernelHeader -update)", got, m)
		}
		compared[key] = true
	}
	if len(compared) != len(recorded) || len(compared) < 700 {
		t.Errorf("%d compared of %d recorded", len(compared), len(recorded))
	}
}

// kernelHeader is the folder of mlx5_ifc.h of Linux 6.12, where the package
// linux-headers-6.12.*-common puts it, or where RDMASIM_MLX5_IFC says.
func kernelHeader() string {
	if dir := os.Getenv("RDMASIM_MLX5_IFC"); dir != "" {
		return dir
	}
	found, _ := filepath.Glob("/usr/src/linux-headers-6.12*-common/include/linux/mlx5")
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// The tables and the record agree with the kernel's header, as gcc lays it out.
func TestTablesAgainstKernelHeader(t *testing.T) {
	dir := kernelHeader()
	if dir == "" {
		t.Skip("needs mlx5_ifc.h of Linux 6.12 (package linux-headers-6.12.*-common, or RDMASIM_MLX5_IFC)")
	}
	h := layout.Header{Folders: []string{dir}, Files: []string{"mlx5_ifc.h"},
		Before: "typedef uint8_t u8;\ntypedef uint16_t u16;\ntypedef uint32_t u32;\ntypedef uint64_t u64;\n" +
			"#define BIT(n) (1ul << (n))\n#define BIT_ULL(n) (1ull << (n))\n" +
			"#define DECLARE_FLEX_ARRAY(type, name) struct { struct {} empty_##name; type name[]; }\n"}
	members := ifcMembers(t)
	measured, err := h.Measure(members)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range measured {
		if m != members[i] {
			t.Errorf("the header says %v, we say %v", m, members[i])
		}
	}
	var b strings.Builder
	b.WriteString("# Structure, member (-: the whole), bit offset from the first byte (most significant bit first) and width in bits (0:\n" +
		"# a list), as gcc computes them from include/linux/mlx5/mlx5_ifc.h of Linux 6.12.117. Written by\n" +
		"# go test ./prm -run KernelHeader -update.\n")
	for _, m := range slices.Compact(measured) {
		name := m.Name
		if name == "" {
			name = "-"
		}
		fmt.Fprintln(&b, m.Struct, name, m.Offset, m.Width)
	}
	if *update {
		if err := os.WriteFile(ifcRecord, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(ifcRecord); err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the header gives: %v", ifcRecord, err)
	}
}
