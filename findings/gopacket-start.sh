#!/usr/bin/env bash
# gopacket 1.1.19: package layers fills a table of all 65,536 EtherTypes before main begins, whatever the program decodes. A program of
# short life (one started for each packet file, a worker, a shell's completion) pays for it each time: 10 to 20 ms and 2.5 MB of pages,
# more than all else that such a program does before main. Keep the import out of what does not decode, or in a program of its own.
. "$(dirname "$0")/lib.sh"
command -v go >/dev/null || cannot "go is missing"
mkdir "$work/start" && cd "$work/start"
cat >go.mod <<'P'
module start

go 1.21

require github.com/google/gopacket v1.1.19
P
cat >main.go <<'P'
package main

import (
	"fmt"
	"unsafe"

	"github.com/google/gopacket/layers"
)

func main() {
	set, named := 0, map[string]bool{}
	for _, m := range layers.EthernetTypeMetadata {
		if m.DecodeWith != nil {
			set++
			named[m.Name] = true
		}
	}
	fmt.Println(set, len(named) < 100, unsafe.Sizeof(layers.EthernetTypeMetadata)>>20)
}
P
export GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0
go build -o start . >log 2>&1 || cannot "the module proxy does not offer gopacket 1.1.19, or it does not build: $(tail -n 1 log)"
now=$(./start)
echo "github.com/google/gopacket v1.1.19, $(go version | cut -d' ' -f3)"
# Times are shown and not compared: they depend on the machine.
for _ in 1 2 3 4 5; do GODEBUG=inittrace=1 ./start 2>&1 >/dev/null; done |
  awk '/^init/ { if ($2 ~ /gopacket\/layers/) own += $5; else other += $5 } END { printf "  before main: %.1f ms in layers, %.1f ms in all other packages (mean of five)\n", own / 5, other / 5 }'
verdict "entries that are set before main, whether fewer than 100 names are among them, and MiB of the table" \
  "nothing of a start: decoders are chosen when a packet is decoded (package gopacket, Lazy Decoding, Fast Decoding)" "65536 true 2" "$now"
finish
