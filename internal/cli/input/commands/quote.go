package commands

import (
	"regexp"
	"strings"
)

// Environment variables of a program with the command that it runs below, up to the program, as a
// shell reads it.
const (
	GuestVariable   = "RDMASIM_VM"   // of rdmasim vm, whose guest has it
	SessionVariable = "RDMASIM_EXEC" // of rdmasim exec
)

// UpTo is the value of such a variable for a command line that ends with so many words of the
// program. Only the command itself knows which these are: what looks like its flags behind the
// program is the program's.
func UpTo(line []string, program int) string {
	line = line[:max(len(line)-program, 0)]
	if len(line) == 0 || line[len(line)-1] != "--" {
		line = append(line[:len(line):len(line)], "--")
	}
	return Shell(line)
}

// Shell are words as a shell reads them.
func Shell(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quoted(w)
	}
	return strings.Join(quoted, " ")
}

var (
	pieceOfWord = regexp.MustCompile(`[-_=./:,@%+A-Za-z0-9]+|'[^']*'|\\'`)
	shellWord   = regexp.MustCompile(`^((?:` + pieceOfWord.String() + `)+)(?: |$)`)
)

// Words are those of a text of Shell. Any other text is refused, for a shell might see more in it
// than words.
func Words(text string) (words []string, ok bool) {
	whole := text
	for text != "" {
		m := shellWord.FindStringSubmatch(text)
		if m == nil {
			return nil, false
		}
		text = text[len(m[0]):]
		words = append(words, pieceOfWord.ReplaceAllStringFunc(m[1], func(piece string) string {
			if piece == `\'` {
				return "'"
			}
			return strings.Trim(piece, "'")
		}))
	}
	return words, len(words) > 0 && Shell(words) == whole
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
