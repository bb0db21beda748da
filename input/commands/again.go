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
	return Line(line)
}

// Line is a command line of such words as a shell reads it.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quoted(w)
	}
	return strings.Join(quoted, " ")
}

// Words are those of a text that Line has made. Of any other text ok is false: a shell would do more with it than run one
// command with these words.
func Words(line string) (words []string, ok bool) {
	var word strings.Builder
	quoted, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && !quoted:
			escaped = true
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted:
			words = append(words, word.String())
			word.Reset()
			continue
		}
		word.WriteRune(r)
	}
	words = append(words, word.String())
	for i, w := range words {
		if inner, cut := strings.CutPrefix(w, "'"); cut {
			words[i] = strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `'\''`, "'")
		}
	}
	return words, Line(words) == line
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
