package oracle_test

import (
	"fmt"
	"os"

	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// A capture of Soft-RoCE is read and judged: its requests leave the MigReq bit 0 (rule OR-023), and
// its PSNs are in order.
func ExampleJudge() {
	f, err := os.Open("../../fixtures/captures/rxe/7.2/write.pcap")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = f.Close() }()
	r, packets, err := pcap.Read(f)
	if err != nil {
		fmt.Println(err)
		return
	}
	runs, err := oracle.Runs(r, packets)
	if err != nil {
		fmt.Println(err)
		return
	}
	result := oracle.Judge(runs[0], oracle.Options{Complete: true})
	fmt.Println("whole:", result.Whole, "violations:", result.Count(oracle.Violation))
	for _, v := range result.Verdicts[:1] {
		fmt.Println(v.Rule)
	}
	// Output:
	// whole: true violations: 0
	// OR-023
}
