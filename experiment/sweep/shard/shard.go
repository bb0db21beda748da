// Package shard reads which part of a sweep or of a run a task is, for programs that divide their
// work.
package shard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Parse reads which part to run: i/n with i from 0 to n-1; auto, the task of a Slurm array; or
// auto/n, a completion of a Kubernetes indexed job or a task of an array, of n.
func Parse(text string, getenv func(string) string) (i, n int, err error) {
	first, count, slash := strings.Cut(text, "/")
	if slash {
		if n, err = number(count); err != nil || n < 1 {
			return 0, 0, fmt.Errorf("%q is not a number of parts", count)
		}
	}
	switch {
	case first != "auto":
		if !slash {
			return 0, 0, errors.New("i/n is needed, such as 0/4, or auto")
		}
		i, err = number(first)
	case getenv("SLURM_ARRAY_TASK_ID") != "":
		i, n, err = slurmTask(n, getenv)
	case getenv("JOB_COMPLETION_INDEX") != "":
		if !slash {
			return 0, 0, errors.New("a container of Kubernetes cannot see how many completions its job has: give auto/N, with that number as N")
		}
		i, err = number(getenv("JOB_COMPLETION_INDEX"))
	default:
		err = errors.New("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set: auto is for tasks of a Slurm array and for indexed jobs of Kubernetes; give i/n elsewhere")
	}
	if err != nil {
		return 0, 0, err
	}
	if i >= n {
		return 0, 0, fmt.Errorf("part %d of %d: parts count from 0 to %d", i, n, n-1)
	}
	return i, n, nil
}

// slurmTask is the task of an array, which may begin anywhere and have gaps of equal width.
func slurmTask(n int, getenv func(string) string) (int, int, error) {
	id, err := number(getenv("SLURM_ARRAY_TASK_ID"))
	if err != nil {
		return 0, 0, fmt.Errorf("SLURM_ARRAY_TASK_ID: %w", err)
	}
	if n > 0 {
		return id, n, nil
	}
	if n, err = number(getenv("SLURM_ARRAY_TASK_COUNT")); err != nil {
		return 0, 0, fmt.Errorf("SLURM_ARRAY_TASK_COUNT: %w", err)
	}
	first, ferr := number(getenv("SLURM_ARRAY_TASK_MIN"))
	last, lerr := number(getenv("SLURM_ARRAY_TASK_MAX"))
	if ferr != nil || lerr != nil || n < 2 {
		return id - first, n, nil
	}
	step := (last - first) / (n - 1)
	if step < 1 || (last-first)%(n-1) != 0 || (id-first)%step != 0 {
		return 0, 0, errors.New("the array's task numbers have gaps of different width, as after a restart of some tasks: give auto/N or i/n")
	}
	return (id - first) / step, n, nil
}

func number(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number from 0 up", s)
	}
	return int(n), nil
}
