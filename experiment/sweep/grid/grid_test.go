package grid

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func parse(t *testing.T, text string) Axis {
	t.Helper()
	a, err := Parse(t.Context(), text, "")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return a
}

func TestValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.txt")
	if err := os.WriteFile(file, []byte("# sizes\n64B\n\n4KiB # a page\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	words := filepath.Join(t.TempDir(), "words.txt")
	if err := os.WriteFile(words, []byte("\"a,b\" # one\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"k=1,2,4", "1 2 4"},
		{"k=1:96:8", "1 9 17 25 33 41 49 57 65 73 81 89"},
		{"k=1:9:8", "1 9"},
		{"k=1..1024*2", "1 2 4 8 16 32 64 128 256 512 1024"},
		{"k=1..10*1.5", "1 2 3 4 6 9"},
		{"k=64B..64KiB*8", "64B 512B 4KiB 32KiB"},
		{"k=1us:2us:250ns", "1us 1.25us 1.5us 1.75us 2us"},
		{"k=100..120+10", "100 110 120"},
		{"k=0,8..32*2,none", "0 8 16 32 none"},
		{"threads,contexts=1:1,8:4", "1:1 8:4"},
		{"k=@" + file, "64B 4KiB"},
		{"k=a..b,c:d:e", "a..b c:d:e"}, // words that only look like ranges
		{"k==1+1,-x", "=1+1 -x"},
		{`profile="a,b.yaml",connectx-5`, "a,b.yaml connectx-5"},
		{`k="1..9","1:9:2",1:3:1`, "1..9 1:9:2 1 2 3"},
		{`a,b="x,y":1,"u:v":2`, "x,y:1 u:v:2"},
		{`k="1..9"`, "1..9"},
		{"k=@" + words, "a,b c"},
	} {
		var got []string
		for _, v := range parse(t, c.text).Values {
			got = append(got, strings.Join(v, ":"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.text, got, c.want)
		}
	}
}

func TestWhatIsNoSweep(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"k", "not of the form"},
		{"k=", "not of the form"},
		{"=1", "not of the form"},
		{"k=1,1", "1 is given twice"},
		{"k=9:1:1", "is empty: 9 is above 1"},
		{"k=-5:5:1", "a range begins at 0 or above"},
		{"k=1:9:0", "a step of 0"},
		{"k=1:9", "LOW:HIGH:STEP"},
		{"k=1..9*1", "not a number above 1"},
		{"k=0..9*2", "begins at 0"},
		{"k=1us..64KiB*2", "not of one kind"},
		{"k=1,2..9", "an interval cannot be part of a list"},
		{"k=1:10000000:1", "more than 1000000 values"},
		{"a,b=1:2,3", "give one for each"},
		{"a,a=1:2", "given twice"},
		{"a,set.a=1:2", "given twice"},
		{"k=@/nonexistent/v.txt", "the file of values"},
		{"k=9..1", "empty or too wide"},
		{`k="a,b`, "a double quote is not closed"},
		{`k="a,b","a,b"`, "a,b is given twice"},
		{"k=1:18446744073709551615:1", "more than 1000000 values"},
	} {
		if _, err := Parse(t.Context(), c.text, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// Every combination is there once, the last key fastest.
func TestPointsAreAllCombinations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Grid
		want := 1
		for i := range rapid.IntRange(0, 4).Draw(t, "axes") {
			n := rapid.IntRange(1, 5).Draw(t, "values")
			a := Axis{Keys: []string{fmt.Sprint("k", i)}}
			for v := range n {
				a.Values = append(a.Values, []string{fmt.Sprint(v)})
			}
			g.Axes = append(g.Axes, a)
			want *= n
		}
		n, err := g.Len()
		if err != nil || n != want {
			t.Fatalf("%d points, %v: want %d", n, err, want)
		}
		last := ""
		for i := range n {
			name := fmt.Sprint(g.At(i))
			if i > 0 && name <= last {
				t.Fatalf("point %d, %s, comes behind %s", i, name, last)
			}
			last = name
		}
	})
}

func TestManyPointsAreCountedAndNotLaidOut(t *testing.T) {
	var g Grid
	for i := range 8 {
		g.Axes = append(g.Axes, parse(t, fmt.Sprintf("k%d=1:200:1", i)))
	}
	if n, err := g.Len(); err != nil || n != 200*200*200*200*200*200*200*200 {
		t.Errorf("%d points, %v", n, err)
	}
	if got := fmt.Sprint(g.At(201)); !strings.Contains(got, "{k6 2} {k7 2}") {
		t.Error(got)
	}
	g.Axes = append(g.Axes, g.Axes[0])
	if _, err := g.Len(); err == nil {
		t.Error("more points than an int can count")
	}
}

// A Latin hypercube has each of as many parts of each axis exactly once, and the same seed gives
// the same points.
func TestSamples(t *testing.T) {
	axes := []Axis{parse(t, "a=1:50:1"), parse(t, "b=1us..1ms"), parse(t, "c=x,y")}
	draw := func(kind string, seed uint64) *Grid {
		g := &Grid{Axes: axes}
		g.Draw(kind, 50, seed)
		return g
	}
	g := draw("latin", 1)
	seen := map[string]int{}
	half := map[string]int{}
	for i := range g.Sample {
		pt := g.At(i)
		seen[pt[0].Value]++
		half[pt[2].Value]++
	}
	if len(g.Sample) != 50 || len(seen) != 50 || half["x"] != 25 {
		t.Errorf("%d points with %d values of a, and x %d times", len(g.Sample), len(seen), half["x"])
	}
	if fmt.Sprint(g.Sample) != fmt.Sprint(draw("latin", 1).Sample) || fmt.Sprint(g.Sample) == fmt.Sprint(draw("latin", 2).Sample) {
		t.Error("the seed does not decide the sample")
	}
	few := &Grid{Axes: []Axis{parse(t, "c=x,y")}}
	few.Draw("random", 100, 1)
	if len(few.Sample) != 2 {
		t.Errorf("%d points of two", len(few.Sample))
	}
	if n, err := draw("random", 3).Len(); err != nil || n != 50 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := (&Grid{Axes: axes}).Len(); err == nil || !strings.Contains(err.Error(), "which only a sample can use") {
		t.Errorf("an interval without a sample: %v", err)
	}
	for text, want := range map[string]string{"500": "", "random:3": "", "latin:1": "", "ltin:3": `did you mean "latin"`, "0": "from 1 to", "x:y:z": `"x" is not latin or random`, "-1": "not a number"} {
		if _, _, err := ParseSample(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		text, suffix string
		first        any
	}{{"k=1,2", "", 1}, {"k=64,1KiB", "_bytes", 64}, {"k=1us,2ns", "_ns", 1000.0}, {"k=100Gbps", "_bps", 100_000_000_000}, {"k=a,1", "-", nil}, {"k=500ps..1us*2", "_ns", 0.5}} {
		a := parse(t, c.text)
		suffix, number, ok := a.Numbers(0)
		if ok != (c.suffix != "-") || ok && (suffix != c.suffix || number(a.Values[0][0]) != c.first) {
			t.Errorf("%s: %q, %v", c.text, suffix, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"k=1,2", "k=1:96:8", "k=1..1024*2", "a,b=1:1,8:8", "k=1us..2us+100ns", "k=1..2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "@") {
			return
		}
		a, err := Parse(t.Context(), text, "")
		if err != nil || a.Between != nil {
			return
		}
		for _, v := range a.Values {
			if len(v) != len(a.Keys) {
				t.Errorf("%q: %v has not %d values", text, v, len(a.Keys))
			}
		}
	})
}
