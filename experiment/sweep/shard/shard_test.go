package shard

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	env := func(kv ...string) func(string) string {
		return func(k string) string {
			for _, s := range kv {
				if v, ok := strings.CutPrefix(s, k+"="); ok {
					return v
				}
			}
			return ""
		}
	}
	for _, c := range []struct {
		text string
		env  func(string) string
		want string
	}{
		{"0/4", env(), "0 4"}, {"3/4", env(), "3 4"}, {"4/4", env(), "parts count from 0 to 3"}, {"1", env(), "i/n is needed"}, {"x/2", env(), "not a number"}, {"0/0", env(), "not a number of parts"},
		{"auto", env("SLURM_ARRAY_TASK_ID=2", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_MAX=3"), "2 4"},
		{"auto", env("SLURM_ARRAY_TASK_ID=14", "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_MIN=10", "SLURM_ARRAY_TASK_MAX=14"), "2 3"},
		{"auto", env("SLURM_ARRAY_TASK_ID=7", "SLURM_ARRAY_TASK_COUNT=2", "SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_MAX=8"), "gaps of different width"},
		{"auto/8", env("SLURM_ARRAY_TASK_ID=7"), "7 8"}, {"auto/3", env("JOB_COMPLETION_INDEX=1"), "1 3"}, {"auto", env("JOB_COMPLETION_INDEX=1"), "give auto/N"}, {"auto", env(), "neither SLURM_ARRAY_TASK_ID"},
	} {
		i, n, err := Parse(c.text, c.env)
		got := fmt.Sprint(i, n)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}
