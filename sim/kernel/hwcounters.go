package kernel

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// portCounters are those of QUERY_Q_COUNTER that mlx5_ib shows of a port, in its order:
// basic_q_cnts, out_of_seq_q_cnts, retrans_q_cnts and extended_err_cnts of Linux 6.12's
// hw/mlx5/counters.c. Linux 6.1 has neither rx_dct_connect nor the two of retries that are
// exceeded.
var portCounters = []prm.QCounter{
	prm.QCRxWriteRequests, prm.QCRxReadRequests, prm.QCRxAtomicRequests, prm.QCRxDCTConnect, prm.QCOutOfBuffer,
	prm.QCOutOfSequence,
	prm.QCDuplicateRequest, prm.QCRNRNAKRetryErr, prm.QCPacketSeqErr, prm.QCImpliedNAKSeqErr, prm.QCLocalAckTimeoutErr,
	prm.QCRespLocalLengthError, prm.QCRespCQEError, prm.QCReqCQEError, prm.QCReqRemoteInvalidRequest, prm.QCReqRemoteAccessErrors,
	prm.QCRespRemoteAccessErrors, prm.QCRespCQEFlushError, prm.QCReqCQEFlushError, prm.QCReqTransportRetriesExceeded, prm.QCReqRNRRetriesExceeded,
}

// acclCounters are roce_accl_cnts there, of a device with the register ROCE_ACCL.
var acclCounters = []prm.QCounter{
	prm.QCRoCEADPRetrans, prm.QCRoCEADPRetransTo, prm.QCRoCESlowRestart, prm.QCRoCESlowRestartCNPs, prm.QCRoCESlowRestartTrans,
}

// PortCounters returns the counters that mlx5_ib shows in a port's hw_counters and by `rdma
// statistic`. Those of congestion control are missing, because the device does not allow querying
// them (cc_query_allowed).
func (d *Device) PortCounters() []prm.QCounter {
	if d.caps.roceAccl {
		return append(portCounters[:len(portCounters):len(portCounters)], acclCounters...)
	}
	return portCounters
}

// PortCounterName returns the name of a counter of PortCounters.
func PortCounterName(c prm.QCounter) string {
	for _, n := range prm.QCounterNames {
		if n.Counter == c {
			return n.Name
		}
	}
	return ""
}

// HWCounters returns the counters of PortCounters, over the QPs of users.
func (d *Device) HWCounters(c Caller) ([]verbs.NamedCounter, error) {
	if d.removed {
		return nil, errRemoved
	}
	k := d.enter(c, true)
	defer k.leave()
	in, out := prm.NewIn(prm.OpQueryQCounter, 0), prm.NewOut(prm.OpQueryQCounter, 0)
	prm.QueryQCounterIn(in).SetCounterSetID(d.qcnt)
	if err := k.exec(in, out); err != nil {
		return nil, fmt.Errorf("%s: query counters: %w", d.name, err)
	}
	var all []verbs.NamedCounter
	for _, q := range d.PortCounters() {
		all = append(all, verbs.NamedCounter{Name: PortCounterName(q), Value: uint64(prm.QueryQCounterOut(out).Get(q))})
	}
	return all, nil
}
