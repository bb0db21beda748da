//go:build hw

package mlx5

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// The text is what Linux 6.12 prints of a DMA-BUF and of another file.
func TestDmabufInfo(t *testing.T) {
	got, err := parseDmabufInfo("pos:\t0\nflags:\t02000002\nmnt_id:\t9\nino:\t1043\nsize:\t65536\ncount:\t3\nexp_name:\tudmabuf\n", 5)
	if want := (verbs.DmabufInfo{Size: 65536, Count: 3, Exporter: "udmabuf"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseDmabufInfo("pos:\t0\nflags:\t0100002\nmnt_id:\t29\nino:\t5\n", 1); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("another file: %v", err)
	}
	if _, err := parseDmabufInfo("size:\tmuch\nexp_name:\tx\n", 1); err == nil {
		t.Error("a size that is no number")
	}
}
