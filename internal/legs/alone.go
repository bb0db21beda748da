package main

import (
	"regexp"
	"slices"
	"strings"
)

// switches are the flags of go test that take no value. Those without meaning for a single test are
// left out of its command, as are the flags of dropped with their values.
var (
	switches = []string{"-race", "-short", "-json", "-v", "-cover", "-x", "-failfast"}
	dropped  = []string{"-json", "-run", "-skip", "-timeout", "-count", "-p"}
)

// alone is the command that runs a test by itself: the leg's own go test with the test's package
// and name, or else the leg.
func alone(l leg, words []string, key testKey) string {
	i := slices.Index(words, "test")
	if i <= 0 || key.Package == "" {
		return "make " + l.name
	}
	var out []string
	for _, v := range l.vars {
		name, value, _ := strings.Cut(v, "=")
		out = append(out, name+"="+quote(value))
	}
	out = append(out, words[0], "test")
	for i++; i < len(words); i++ {
		flag, _, joined := strings.Cut(words[i], "=")
		if !strings.HasPrefix(flag, "-") {
			continue // a package
		}
		value := ""
		if !joined && !slices.Contains(switches, flag) && i+1 < len(words) {
			i++
			value = words[i]
		}
		if slices.Contains(dropped, flag) {
			continue
		}
		if joined {
			out = append(out, quote(words[i]))
			continue
		}
		out = append(out, flag)
		if value != "" {
			out = append(out, quote(value))
		}
	}
	out = append(out, "-count=1", "./"+key.Package)
	if key.Test != "" {
		parts := strings.Split(key.Test, "/")
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		out = append(out, "-run", quote(strings.Join(parts, "/")))
	}
	return strings.Join(out, " ")
}

var harmless = regexp.MustCompile(`^[\w@%+:,./=-]+$`)

// quote is a word as the shell needs it.
func quote(word string) string {
	if harmless.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
