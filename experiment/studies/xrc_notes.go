package studies

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// lifeOf finds the row of a case under a design.
func lifeOf(rows []table.Row, name, letter string) *table.Row {
	for i := range rows {
		if r := &rows[i]; r.Get("case") == name && r.Get("design") == letter {
			return r
		}
	}
	return &table.Row{}
}

func (x *xrcRun) concludeLifetime(rows []table.Row) {
	n := x.Note
	n("lifetime: processes of a node share an XRC domain, which a file names. The first one creates a target QP and is then killed. sender_before and sender_status are how a message from another host to the process that is named by its SRQ ends before and after that, and received whether it has the second one: the second process, or where there is none the creator. qps_alive and domains_alive are counted then, qps_left and domains_left when every process has ended. reopen is what a third process has from opening the file without O_CREAT, opening the QP by its number, and destroying it.")
	for i := range x.designs {
		d := &x.designs[i]
		n("lifetime: %s, kernel.xrc=%s: %s", d.series(), d.kernel, fateOfDesign(rows, d))
	}
	n("lifetime: in all %d runs every context, PD, CQ, SRQ, region and pinned page was gone when the last process had ended; QPs and domains are those of qps_left and domains_left.", len(rows))
}

// fateOfDesign says in sentences what the rows of a design show.
func fateOfDesign(rows []table.Row, d *xrcDesign) string {
	var s []string
	add := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	joins := lifeOf(rows, caseJoins, d.letter)
	user := "a second process that has joined the QP"
	if joins.Get("joined") != "ok" {
		user = "a second process, which has no call to join the QP (" + num(joins, "joined") + "),"
	}
	if joins.Get("received") == true {
		add("%s goes on receiving when the creator has died.", user)
	} else {
		add("%s receives nothing more when the creator has died; the sender has %s.", user, num(joins, "sender_status"))
	}
	if opens := lifeOf(rows, caseOpens, d.letter); opens.Get("received") == true {
		add("One that has only opened the domain goes on receiving, too.")
	}
	if r := lifeOf(rows, caseDestroy, d.letter); r.Get("received") == true {
		add("No call ends the QP: %s lives although nobody wants it any more.", num(r, "qps_alive"))
	}
	qps, _ := joins.Float("qps_left")
	if qps == 0 {
		add("When all have ended, nothing is left.")
		return strings.Join(s, " ")
	}
	add("LEAK: when all have ended, %s QP and %s domain are left, which the QP pins.", num(joins, "qps_left"), num(joins, "domains_left"))
	if r := lifeOf(rows, caseAlone, d.letter); r.Get("qps_left") != uint64(0) {
		add("So it is when the creator was the only one: the QP answers, but the SRQ has gone with its process, and the sender has %s.", num(r, "sender_status"))
	}
	again, never := lifeOf(rows, caseReopens, d.letter), lifeOf(rows, caseUnnamed, d.letter)
	add("Opening file and QP again ends with %s, and %s QPs and %s domains are left then. Without a file it ends with %s: %s QP and %s domain stay until the device goes.",
		num(again, "reopen"), num(again, "qps_left"), num(again, "domains_left"), num(never, "reopen"), num(never, "qps_left"), num(never, "domains_left"))
	return strings.Join(s, " ")
}

func (x *xrcRun) concludeLongServer(rows []table.Row) {
	n, total, commands := x.Note, 0, uint64(0)
	both, one := x.Int("both_percent"), x.Int("one_side_percent")
	for i := range rows {
		total += rows[i].Get("connects").(int)
		commands += rows[i].Get("commands").(uint64)
	}
	n("long-server: two processes of a server share a domain. Each day %d clients connect, each with a target QP in a domain of its own, and go: of 100, %d disconnect on both sides, %d on their own only, so that the server is never told, and %d are killed, of which it is not told either. not_told counts those. after_qps and the like are counted when all processes have ended.", x.Int("clients"), both, one, 100-both-one)
	if days := x.Int("restart_days"); days > 0 {
		n("long-server: the server's processes are killed every %d days, one after the other, and start again.", days)
	}
	for i := range rows {
		r := &rows[i]
		name := ""
		for j := range x.designs {
			if x.designs[j].letter == r.Get("design") {
				name = x.designs[j].series()
			}
		}
		n("long-server: %s: %s", name, yearOf(r))
	}
	n("long-server: %d clients came in all. What each of them does goes through the calls of the driver and the commands of the devices, %d in all: create, INIT and RTR on both sides, and what ends it. Days are those of a schedule: the simulator's clock, which ends after 106 days, counts only what the calls take. The clients that are killed on a day are one process, with a domain for each. Initiators, SRQs and traffic are left out: they are their process's in every design.", total, commands)
	n("long-server: bytes are %d of context for each QP (hca.qpc_cache: %s) and %d of the kernel's own (kernel_qp_bytes, assumed). Handles and registrations are not counted.", contextBytes, sourceOf(x.Env, "hca.qpc_cache"), x.Int("kernel_qp_bytes"))
}

// sourceOf says where the value of a profile is from.
func sourceOf(e *experiment.Env, key string) string {
	v, _ := e.Profile.Lookup(key)
	return v.Source
}

// yearOf says what a row of the year shows.
func yearOf(r *table.Row) string {
	var s []string
	add := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	alive, _ := r.Float("qps_alive")
	switch {
	case alive == 0:
		add("no QP is left of %s clients.", num(r, "connects"))
	case r.Get("qps_alive") == r.Get("not_told"):
		add("%s QPs live after %s days, one for each client of which the server was not told.", num(r, "qps_alive"), num(r, "day"))
	default:
		add("%s QPs live after %s days; the server was not told of %s clients.", num(r, "qps_alive"), num(r, "day"), num(r, "not_told"))
	}
	switch r.Get("full_how") {
	case "run":
		add("On day %s the device has no more, and creating one fails with %s: %s clients are refused.", num(r, "full_day"), num(r, "refused_errno"), num(r, "refused"))
	case "computed":
		add("At this rate the device has no more on day %s.", num(r, "full_day"))
	}
	if n, _ := r.Float("client_refused"); n > 0 {
		add("%s clients cannot come, since their own device has no more.", num(r, "client_refused"))
	}
	left, _ := r.Float("after_qps")
	clients, _ := r.Float("after_client_qps")
	if left+clients == 0 {
		add("None is left when the server has ended.")
	} else {
		add("LEAK: when server and clients have ended, %s QPs and %s domain are left on the server's host, and %s QPs in %s domains on that of the clients, those of the clients that were killed.",
			num(r, "after_qps"), num(r, "after_domains"), num(r, "after_client_qps"), num(r, "after_client_domains"))
	}
	return strings.Join(s, " ")
}

func (x *xrcRun) concludeFootprint(rows []table.Row) {
	n, p := x.Note, x.Int("processes")
	var most *table.Row // of the runs
	largest, apart := map[string]int{}, 0.0
	var full []string
	for i := range rows {
		r := &rows[i]
		name, nodes := r.Get("transport").(string), r.Get("nodes").(int)
		if r.Get("beyond_device") == true && !strings.Contains(strings.Join(full, "; "), name+" ") {
			full = append(full, fmt.Sprintf("%s from %d nodes on", name, nodes))
		}
		if r.Get("how") != "run" {
			continue
		}
		largest[name] = nodes
		got, _ := r.Float("miss_percent")
		want, _ := r.Float("expected_percent")
		apart = max(apart, got-want, want-got)
		if q, _ := r.Float("qps"); most == nil || q > float64(most.Get("qps").(int)) {
			most = r
		}
	}
	rc, xrc := meshOf(rows, "RC"), meshOf(rows, "XRC")
	n("footprint: each of %d processes of every node sends to every process of the other nodes. RC needs (N-1) x P^2 queue pairs on a node, XRC (N-1) x P initiators and as many targets. With %d nodes these are %s and %s QPs, which take %s and %s KiB. XRC has fewer queue pairs from 3 processes on, and with one twice as many.", p, rc.Get("nodes"), num(rc, "qps"), num(xrc, "qps"), orNone(num(rc, "kib")), orNone(num(xrc, "kib")))
	n("footprint: rows with how=run are simulated: a node with all of its queue pairs, which the driver and the device count, and on the other host the queue pairs of all other nodes. That is up to %s. Beyond, up to %d queue pairs (simulate_qps), they are computed: lines of their own in pictures.", listRuns(largest), x.Int("simulate_qps"))
	n("footprint: kib are the rings, doorbell records and SRQs of the node's processes as the kernel has pinned them, and for each queue pair a context of %d bytes (hca.qpc_cache: %s) and %d bytes of the kernel (kernel_qp_bytes, assumed). Computed ones go on in a line from the two largest that ran. An SRQ has %d times the receives of a queue. DC is not modelled: it is computed with %d initiators of the ring of an XRC initiator for each process (dcis, assumed), and one target; the cost of reconnecting them is not in it.", contextBytes, sourceOf(x.Env, "hca.qpc_cache"), x.Int("kernel_qp_bytes"), srqFactor, x.Int("dcis"))
	n("footprint: miss_percent are the queue pair contexts that the node's device has to fetch for each message (a message sent looks twice, for the request and for its ACK, one received once), where messages are sent or received in random order; expected_percent is that of a direct-mapped cache of hca.qpc_cache=%d contexts. Runs differ from it by %s at most.", x.Profile.HCA.QPCCache, table.Short(apart))
	if len(full) > 0 {
		n("footprint: more queue pairs than the device has (hca.log_max_qp=%d): %s.", x.Profile.HCA.LogMaxQP, strings.Join(full, "; "))
	}
}

// orNone is a value of a row, or a dash for one that the row does not have.
func orNone(s string) string { return cmp.Or(s, "-") }

// meshOf is the row of the largest mesh of a kind.
func meshOf(rows []table.Row, kind string) *table.Row {
	found := &table.Row{}
	for i := range rows {
		if rows[i].Get("transport") == kind {
			found = &rows[i]
		}
	}
	return found
}

// listRuns says up to which size each kind has been simulated.
func listRuns(largest map[string]int) string {
	var s []string
	for _, k := range meshKinds() {
		if n := largest[k.name]; n > 0 {
			s = append(s, fmt.Sprintf("%d nodes for %s", n, k.name))
		}
	}
	return list(s)
}
