package hca

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateCommands = flag.Bool("update-commands", false, "write the lists of firmware commands in docs/vm.md")

// commandList is a list of the page: <!-- commands: all -->, then a fenced text.
var commandList = regexp.MustCompile("(?s)<!-- commands: (\\w+) -->\n```\n(.*?)```\n")

// TestCommandsOfThePage: docs/vm.md lists exactly the commands of the firmware, those of network
// interfaces on Ethernet apart.
func TestCommandsOfThePage(t *testing.T) {
	const path = "../../docs/vm.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]string{"all": "", "ethernet": ""}
	for op := range commands {
		lists["all"] += op.String() + "\n"
	}
	for op := range nicCommands {
		lists["ethernet"] += op.String() + "\n"
	}
	got := commandList.ReplaceAllFunc(text, func(b []byte) []byte {
		which := string(commandList.FindSubmatch(b)[1])
		names, ok := lists[which]
		if !ok {
			t.Fatalf("docs/vm.md: there is no list %q, or it is there twice", which)
		}
		delete(lists, which)
		return []byte("<!-- commands: " + which + " -->\n```\n" + inColumns(names) + "```\n")
	})
	if len(lists) > 0 {
		t.Fatalf("docs/vm.md lacks lists: %v", lists)
	}
	switch {
	case *updateCommands:
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	case string(got) != string(text):
		t.Error("docs/vm.md does not list the commands of the firmware: go test ./sim/hca -run CommandsOfThePage -update-commands")
	}
}

// inColumns returns names in alphabetical order, in lines of at most 100 columns.
func inColumns(names string) (text string) {
	all := strings.Fields(names)
	slices.Sort(all)
	line := ""
	for _, n := range all {
		if len(line)+1+len(n) > 100 {
			text, line = text+line+"\n", ""
		}
		line = strings.TrimPrefix(line+" "+n, " ")
	}
	return text + line + "\n"
}
