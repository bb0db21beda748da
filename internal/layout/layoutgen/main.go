// Command layoutgen writes the views of the package in the current folder from the tables in its
// folder layouts. It is run by go generate.
package main

import (
	"fmt"
	"os"

	"github.com/rdmasim/rdmasim/internal/layout"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "layoutgen:", err)
		os.Exit(1)
	}
}

func run() error {
	p, err := layout.Read("layouts")
	if err != nil {
		return err
	}
	files, err := p.Files()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
