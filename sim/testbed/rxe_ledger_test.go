package testbed

import (
	"os"
	"strings"
	"testing"
)

// difference is a line of the ledger: where the simulator's frames are not those of
// Soft-RoCE, and why. docs/wire.md tells its reader the same.
type difference struct {
	field    string // of wireFields, "rounds" or "order"
	scenario string // empty: all
	kernel   string // empty: both
	rxe, sim uint64
	anyRXE   bool
	why      string
	source   string
}

var ledger = []difference{
	{field: "ip.id", anyRXE: true, sim: 0,
		why:    "Soft-RoCE's frames go through the host's IP stack, which counts datagrams; a card's datagrams, never fragmented, all carry 0",
		source: "Linux rxe_net.c, prepare_ipv4_hdr calls __ip_select_ident; RFC 6864: with DF the field has no meaning. Inferred: that a card sends 0"},
	{field: "bth.m", rxe: 0, sim: 1,
		why:    "the path is in state MIGRATED, which the bit says; Soft-RoCE has no path migration and never sets it",
		source: "Linux mlx5/qp.c makes QP contexts with pm_state MLX5_QP_PM_MIGRATED; qib sets the bit by the state; rxe_req.c never sets it"},
	{field: "aeth.syndrome", scenario: "nak_recv_too_short", rxe: 0x63, sim: 0x61,
		why:    "a SEND longer than the receive's buffers is an invalid request; Soft-RoCE means to say so, but its copy routine reports the overrun as a malformed receive",
		source: "Linux rxe_resp.c: send_data_in takes ENOSPC for a length error (NAK 0x61) and all else for a malformed WQE (0x63); rxe_mr.c, copy_data returns EINVAL when the length is beyond what is left. qib answers 0x61"},
	{field: "rounds", scenario: "rnr", rxe: 4, sim: 24,
		why:    "a card tries again when the coded 1.28 ms are over; Soft-RoCE's timer runs in jiffies of 4 ms and in an emulated machine, so that fewer tries fit the 30 ms without a receive",
		source: "Linux rxe_comp.c, rnrnak_jiffies; the times in the captures: 7.0 to 12.2 ms"},
	{field: "order", scenario: "write", kernel: "6.1",
		why:    "the second WRITE is posted behind the first: a card sends it before the first one's ACK is back, as Soft-RoCE of 7.2 does; that of 6.1 in its emulated machine was slower than the ACK",
		source: "the captures: the same program, the same frames of each end, in another order between them"},
}

// What the test knows the reader must be able to find.
func TestLedgerIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ledger {
		if d.why == "" || d.source == "" {
			t.Errorf("%s %s: no reason or no source", d.field, d.scenario)
		}
		row := ""
		for _, line := range strings.Split(string(doc), "\n") {
			if strings.HasPrefix(line, "| `"+d.field+"`") {
				row = line
			}
		}
		if !strings.Contains(row, d.scenario) {
			t.Errorf("docs/wire.md has no row for %s, %s", d.field, d.scenario)
		}
	}
}
