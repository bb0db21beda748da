package prm

// QCounter names a counter of QUERY_Q_COUNTER by its offset in the out mailbox. Each
// is 32 bits and wraps.
type QCounter int

// Counters (mlx5_ifc query_q_counter_out), in the order of their offsets.
const (
	QCRxWriteRequests             QCounter = 0x10
	QCRxReadRequests              QCounter = 0x18
	QCRxAtomicRequests            QCounter = 0x20
	QCRxDCTConnect                QCounter = 0x28
	QCOutOfBuffer                 QCounter = 0x30
	QCOutOfSequence               QCounter = 0x38
	QCDuplicateRequest            QCounter = 0x40
	QCRNRNAKRetryErr              QCounter = 0x48
	QCPacketSeqErr                QCounter = 0x50
	QCImpliedNAKSeqErr            QCounter = 0x58
	QCLocalAckTimeoutErr          QCounter = 0x60
	QCReqRNRRetriesExceeded       QCounter = 0x70
	QCRespLocalLengthError        QCounter = 0x78
	QCReqLocalLengthError         QCounter = 0x7c
	QCRespLocalQPError            QCounter = 0x80
	QCLocalOperationError         QCounter = 0x84
	QCRespLocalProtection         QCounter = 0x88
	QCReqLocalProtection          QCounter = 0x8c
	QCRespCQEError                QCounter = 0x90
	QCReqCQEError                 QCounter = 0x94
	QCReqMWBinding                QCounter = 0x98
	QCReqBadResponse              QCounter = 0x9c
	QCReqRemoteInvalidRequest     QCounter = 0xa0
	QCRespRemoteInvalidRequest    QCounter = 0xa4
	QCReqRemoteAccessErrors       QCounter = 0xa8
	QCRespRemoteAccessErrors      QCounter = 0xac
	QCReqRemoteOperationErrors    QCounter = 0xb0
	QCReqTransportRetriesExceeded QCounter = 0xb4
	QCCQOverflow                  QCounter = 0xb8
	QCRespCQEFlushError           QCounter = 0xbc
	QCReqCQEFlushError            QCounter = 0xc0
	QCRoCEADPRetrans              QCounter = 0xc8
	QCRoCEADPRetransTo            QCounter = 0xcc
	QCRoCESlowRestart             QCounter = 0xd0
	QCRoCESlowRestartCNPs         QCounter = 0xd4
	QCRoCESlowRestartTrans        QCounter = 0xd8
)

// QCounterNames are the names that hw_counters in sysfs shows for them.
var QCounterNames = [...]struct {
	Counter QCounter
	Name    string
}{
	{QCRxWriteRequests, "rx_write_requests"},
	{QCRxReadRequests, "rx_read_requests"},
	{QCRxAtomicRequests, "rx_atomic_requests"},
	{QCRxDCTConnect, "rx_dct_connect"},
	{QCOutOfBuffer, "out_of_buffer"},
	{QCOutOfSequence, "out_of_sequence"},
	{QCDuplicateRequest, "duplicate_request"},
	{QCRNRNAKRetryErr, "rnr_nak_retry_err"},
	{QCPacketSeqErr, "packet_seq_err"},
	{QCImpliedNAKSeqErr, "implied_nak_seq_err"},
	{QCLocalAckTimeoutErr, "local_ack_timeout_err"},
	{QCReqRNRRetriesExceeded, "req_rnr_retries_exceeded"},
	{QCRespLocalLengthError, "resp_local_length_error"},
	{QCReqLocalLengthError, "req_local_length_error"},
	{QCRespLocalQPError, "resp_local_qp_error"},
	{QCLocalOperationError, "local_operation_error"},
	{QCRespLocalProtection, "resp_local_protection"},
	{QCReqLocalProtection, "req_local_protection"},
	{QCRespCQEError, "resp_cqe_error"},
	{QCReqCQEError, "req_cqe_error"},
	{QCReqMWBinding, "req_mw_binding"},
	{QCReqBadResponse, "req_bad_response"},
	{QCReqRemoteInvalidRequest, "req_remote_invalid_request"},
	{QCRespRemoteInvalidRequest, "resp_remote_invalid_request"},
	{QCReqRemoteAccessErrors, "req_remote_access_errors"},
	{QCRespRemoteAccessErrors, "resp_remote_access_errors"},
	{QCReqRemoteOperationErrors, "req_remote_operation_errors"},
	{QCReqTransportRetriesExceeded, "req_transport_retries_exceeded"},
	{QCCQOverflow, "cq_overflow"},
	{QCRespCQEFlushError, "resp_cqe_flush_error"},
	{QCReqCQEFlushError, "req_cqe_flush_error"},
	{QCRoCEADPRetrans, "roce_adp_retrans"},
	{QCRoCEADPRetransTo, "roce_adp_retrans_to"},
	{QCRoCESlowRestart, "roce_slow_restart"},
	{QCRoCESlowRestartCNPs, "roce_slow_restart_cnps"},
	{QCRoCESlowRestartTrans, "roce_slow_restart_trans"},
}

// Get reads a counter.
func (q QueryQCounterOut) Get(c QCounter) uint32 { return be32(q, int(c)) }

// Set writes a counter.
func (q QueryQCounterOut) Set(c QCounter, v uint32) { putBE32(q, int(c), v) }

// VportCounter names a pair {packets, octets} of QUERY_VPORT_COUNTER by its offset in
// the out mailbox. RoCE traffic counts as InfiniBand here.
type VportCounter int

// Pairs (mlx5_ifc query_vport_counter_out).
const (
	VCReceivedErrors VportCounter = 0x10
	VCTransmitErrors VportCounter = 0x20
	VCRxIBUnicast    VportCounter = 0x30
	VCTxIBUnicast    VportCounter = 0x40
	VCRxIBMulticast  VportCounter = 0x50
	VCTxIBMulticast  VportCounter = 0x60
	VCRxEthBroadcast VportCounter = 0x70
	VCTxEthBroadcast VportCounter = 0x80
	VCRxEthUnicast   VportCounter = 0x90
	VCTxEthUnicast   VportCounter = 0xa0
	VCRxEthMulticast VportCounter = 0xb0
	VCTxEthMulticast VportCounter = 0xc0
)

// Packets returns the packets of a counter.
func (q QueryVportCounterOut) Packets(c VportCounter) uint64 { return be64(q, int(c)) }

// Octets returns the bytes of a counter.
func (q QueryVportCounterOut) Octets(c VportCounter) uint64 { return be64(q, int(c)+8) }

// Set writes a pair.
func (q QueryVportCounterOut) Set(c VportCounter, packets, octets uint64) {
	putBE64(q, int(c), packets)
	putBE64(q, int(c)+8, octets)
}
