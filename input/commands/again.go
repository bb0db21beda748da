package commands

import "strings"

// GuestVariable is the environment variable of a guest of rdmasim vm with the command that booted it, up to the program, as a shell reads it.
const GuestVariable = "RDMASIM_VM"

// Guest is the value of GuestVariable for a command line that ends with so many words of the program.
func Guest(line []string, program int) string {
	line = line[:len(line)-program]
	if line[len(line)-1] != "--" {
		line = append(line[:len(line):len(line)], "--")
	}
	words := make([]string, len(line))
	for i, w := range line {
		words[i] = Quoted(w)
	}
	return strings.Join(words, " ")
}

// Quoted is a word as a shell reads it.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:,@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
