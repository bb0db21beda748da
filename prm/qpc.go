package prm

// QPC is the queue-pair context (mlx5_ifc qpc). Log sizes: SQ in 64-byte WQEBBs,
// RQ stride is 16 bytes << LogRQStride, pages are 4096 bytes << LogPageSize, page
// offset in units of page/64.
type QPC []byte

// QPCSize is its length in bytes.
const QPCSize = 0xe8

func (c QPC) State() uint32                       { return bits(c, 0x00, 31, 28) }
func (c QPC) SetState(v uint32)                   { put(c, 0x00, 31, 28, v) }
func (c QPC) LAGTXPortAffinity() uint32           { return bits(c, 0x00, 27, 24) }
func (c QPC) SetLAGTXPortAffinity(v uint32)       { put(c, 0x00, 27, 24, v) }
func (c QPC) ST() uint32                          { return bits(c, 0x00, 23, 16) }
func (c QPC) SetST(v uint32)                      { put(c, 0x00, 23, 16, v) }
func (c QPC) IsolateVLTC() bool                   { return bit(c, 0x00, 13) }
func (c QPC) SetIsolateVLTC(v bool)               { putBit(c, 0x00, 13, v) }
func (c QPC) PMState() uint32                     { return bits(c, 0x00, 12, 11) }
func (c QPC) SetPMState(v uint32)                 { put(c, 0x00, 12, 11, v) }
func (c QPC) ReqE2ECreditMode() uint32            { return bits(c, 0x00, 9, 8) }
func (c QPC) SetReqE2ECreditMode(v uint32)        { put(c, 0x00, 9, 8, v) }
func (c QPC) OffloadType() uint32                 { return bits(c, 0x00, 7, 4) }
func (c QPC) SetOffloadType(v uint32)             { put(c, 0x00, 7, 4, v) }
func (c QPC) EndPaddingMode() uint32              { return bits(c, 0x00, 3, 2) }
func (c QPC) SetEndPaddingMode(v uint32)          { put(c, 0x00, 3, 2, v) }
func (c QPC) WQSignature() bool                   { return bit(c, 0x04, 31) }
func (c QPC) SetWQSignature(v bool)               { putBit(c, 0x04, 31, v) }
func (c QPC) BlockLBMC() bool                     { return bit(c, 0x04, 30) }
func (c QPC) SetBlockLBMC(v bool)                 { putBit(c, 0x04, 30, v) }
func (c QPC) AtomicLikeWriteEn() bool             { return bit(c, 0x04, 29) }
func (c QPC) SetAtomicLikeWriteEn(v bool)         { putBit(c, 0x04, 29, v) }
func (c QPC) LatencySensitive() bool              { return bit(c, 0x04, 28) }
func (c QPC) SetLatencySensitive(v bool)          { putBit(c, 0x04, 28, v) }
func (c QPC) DrainSigErr() bool                   { return bit(c, 0x04, 26) }
func (c QPC) SetDrainSigErr(v bool)               { putBit(c, 0x04, 26, v) }
func (c QPC) PD() uint32                          { return bits(c, 0x04, 23, 0) }
func (c QPC) SetPD(v uint32)                      { put(c, 0x04, 23, 0, v) }
func (c QPC) MTU() uint32                         { return bits(c, 0x08, 31, 29) }
func (c QPC) SetMTU(v uint32)                     { put(c, 0x08, 31, 29, v) }
func (c QPC) LogMsgMax() uint32                   { return bits(c, 0x08, 28, 24) }
func (c QPC) SetLogMsgMax(v uint32)               { put(c, 0x08, 28, 24, v) }
func (c QPC) LogRQSize() uint32                   { return bits(c, 0x08, 22, 19) }
func (c QPC) SetLogRQSize(v uint32)               { put(c, 0x08, 22, 19, v) }
func (c QPC) LogRQStride() uint32                 { return bits(c, 0x08, 18, 16) }
func (c QPC) SetLogRQStride(v uint32)             { put(c, 0x08, 18, 16, v) }
func (c QPC) NoSQ() bool                          { return bit(c, 0x08, 15) }
func (c QPC) SetNoSQ(v bool)                      { putBit(c, 0x08, 15, v) }
func (c QPC) LogSQSize() uint32                   { return bits(c, 0x08, 14, 11) }
func (c QPC) SetLogSQSize(v uint32)               { put(c, 0x08, 14, 11, v) }
func (c QPC) RetryMode() uint32                   { return bits(c, 0x08, 9, 8) }
func (c QPC) SetRetryMode(v uint32)               { put(c, 0x08, 9, 8, v) }
func (c QPC) TSFormat() uint32                    { return bits(c, 0x08, 7, 6) }
func (c QPC) SetTSFormat(v uint32)                { put(c, 0x08, 7, 6, v) }
func (c QPC) RLKY() bool                          { return bit(c, 0x08, 4) }
func (c QPC) SetRLKY(v bool)                      { putBit(c, 0x08, 4, v) }
func (c QPC) ULPStatelessOffloadMode() uint32     { return bits(c, 0x08, 3, 0) }
func (c QPC) SetULPStatelessOffloadMode(v uint32) { put(c, 0x08, 3, 0, v) }
func (c QPC) CounterSetID() uint32                { return bits(c, 0x0c, 31, 24) }
func (c QPC) SetCounterSetID(v uint32)            { put(c, 0x0c, 31, 24, v) }
func (c QPC) UARPage() uint32                     { return bits(c, 0x0c, 23, 0) }
func (c QPC) SetUARPage(v uint32)                 { put(c, 0x0c, 23, 0, v) }
func (c QPC) UserIndex() uint32                   { return bits(c, 0x10, 23, 0) }
func (c QPC) SetUserIndex(v uint32)               { put(c, 0x10, 23, 0, v) }
func (c QPC) LogPageSize() uint32                 { return bits(c, 0x14, 28, 24) }
func (c QPC) SetLogPageSize(v uint32)             { put(c, 0x14, 28, 24, v) }
func (c QPC) RemoteQPN() uint32                   { return bits(c, 0x14, 23, 0) }
func (c QPC) SetRemoteQPN(v uint32)               { put(c, 0x14, 23, 0, v) }
func (c QPC) PrimaryPath() ADS                    { return ADS(c[0x18:0x44:0x44]) }
func (c QPC) SecondaryPath() ADS                  { return ADS(c[0x44:0x70:0x70]) }
func (c QPC) LogAckReqFreq() uint32               { return bits(c, 0x70, 31, 28) }
func (c QPC) SetLogAckReqFreq(v uint32)           { put(c, 0x70, 31, 28, v) }
func (c QPC) LogSRAMax() uint32                   { return bits(c, 0x70, 23, 21) }
func (c QPC) SetLogSRAMax(v uint32)               { put(c, 0x70, 23, 21, v) }
func (c QPC) RetryCount() uint32                  { return bits(c, 0x70, 18, 16) }
func (c QPC) SetRetryCount(v uint32)              { put(c, 0x70, 18, 16, v) }
func (c QPC) RNRRetry() uint32                    { return bits(c, 0x70, 15, 13) }
func (c QPC) SetRNRRetry(v uint32)                { put(c, 0x70, 15, 13, v) }
func (c QPC) FRE() bool                           { return bit(c, 0x70, 11) }
func (c QPC) SetFRE(v bool)                       { putBit(c, 0x70, 11, v) }
func (c QPC) CurRNRRetry() uint32                 { return bits(c, 0x70, 10, 8) }
func (c QPC) SetCurRNRRetry(v uint32)             { put(c, 0x70, 10, 8, v) }
func (c QPC) CurRetryCount() uint32               { return bits(c, 0x70, 7, 5) }
func (c QPC) SetCurRetryCount(v uint32)           { put(c, 0x70, 7, 5, v) }
func (c QPC) NextSendPSN() uint32                 { return bits(c, 0x78, 23, 0) }
func (c QPC) SetNextSendPSN(v uint32)             { put(c, 0x78, 23, 0, v) }
func (c QPC) LogNumDCIStreamChannels() uint32     { return bits(c, 0x7c, 28, 24) }
func (c QPC) SetLogNumDCIStreamChannels(v uint32) { put(c, 0x7c, 28, 24, v) }
func (c QPC) CQNSnd() uint32                      { return bits(c, 0x7c, 23, 0) }
func (c QPC) SetCQNSnd(v uint32)                  { put(c, 0x7c, 23, 0, v) }
func (c QPC) LogNumDCIErroredStreams() uint32     { return bits(c, 0x80, 28, 24) }
func (c QPC) SetLogNumDCIErroredStreams(v uint32) { put(c, 0x80, 28, 24, v) }
func (c QPC) DETHSQPN() uint32                    { return bits(c, 0x80, 23, 0) }
func (c QPC) SetDETHSQPN(v uint32)                { put(c, 0x80, 23, 0, v) }
func (c QPC) LastAckedPSN() uint32                { return bits(c, 0x88, 23, 0) }
func (c QPC) SetLastAckedPSN(v uint32)            { put(c, 0x88, 23, 0, v) }
func (c QPC) SSN() uint32                         { return bits(c, 0x8c, 23, 0) }
func (c QPC) SetSSN(v uint32)                     { put(c, 0x8c, 23, 0, v) }
func (c QPC) LogRRAMax() uint32                   { return bits(c, 0x90, 23, 21) }
func (c QPC) SetLogRRAMax(v uint32)               { put(c, 0x90, 23, 21, v) }
func (c QPC) AtomicMode() uint32                  { return bits(c, 0x90, 19, 16) }
func (c QPC) SetAtomicMode(v uint32)              { put(c, 0x90, 19, 16, v) }
func (c QPC) RRE() bool                           { return bit(c, 0x90, 15) }
func (c QPC) SetRRE(v bool)                       { putBit(c, 0x90, 15, v) }
func (c QPC) RWE() bool                           { return bit(c, 0x90, 14) }
func (c QPC) SetRWE(v bool)                       { putBit(c, 0x90, 14, v) }
func (c QPC) RAE() bool                           { return bit(c, 0x90, 13) }
func (c QPC) SetRAE(v bool)                       { putBit(c, 0x90, 13, v) }
func (c QPC) PageOffset() uint32                  { return bits(c, 0x90, 11, 6) }
func (c QPC) SetPageOffset(v uint32)              { put(c, 0x90, 11, 6, v) }
func (c QPC) CDSlaveReceive() bool                { return bit(c, 0x90, 2) }
func (c QPC) SetCDSlaveReceive(v bool)            { putBit(c, 0x90, 2, v) }
func (c QPC) CDSlaveSend() bool                   { return bit(c, 0x90, 1) }
func (c QPC) SetCDSlaveSend(v bool)               { putBit(c, 0x90, 1, v) }
func (c QPC) CDMaster() bool                      { return bit(c, 0x90, 0) }
func (c QPC) SetCDMaster(v bool)                  { putBit(c, 0x90, 0, v) }
func (c QPC) MinRNRNAK() uint32                   { return bits(c, 0x94, 28, 24) }
func (c QPC) SetMinRNRNAK(v uint32)               { put(c, 0x94, 28, 24, v) }
func (c QPC) NextRcvPSN() uint32                  { return bits(c, 0x94, 23, 0) }
func (c QPC) SetNextRcvPSN(v uint32)              { put(c, 0x94, 23, 0, v) }
func (c QPC) XRCD() uint32                        { return bits(c, 0x98, 23, 0) }
func (c QPC) SetXRCD(v uint32)                    { put(c, 0x98, 23, 0, v) }
func (c QPC) CQNRcv() uint32                      { return bits(c, 0x9c, 23, 0) }
func (c QPC) SetCQNRcv(v uint32)                  { put(c, 0x9c, 23, 0, v) }
func (c QPC) DBRAddr() uint64                     { return be64(c, 0xa0) }
func (c QPC) SetDBRAddr(v uint64)                 { putBE64(c, 0xa0, v) }
func (c QPC) QKey() uint32                        { return be32(c, 0xa8) }
func (c QPC) SetQKey(v uint32)                    { putBE32(c, 0xa8, v) }
func (c QPC) RQType() uint32                      { return bits(c, 0xac, 26, 24) }
func (c QPC) SetRQType(v uint32)                  { put(c, 0xac, 26, 24, v) }
func (c QPC) SRQN() uint32                        { return bits(c, 0xac, 23, 0) }
func (c QPC) SetSRQN(v uint32)                    { put(c, 0xac, 23, 0, v) }
func (c QPC) RMSN() uint32                        { return bits(c, 0xb0, 23, 0) }
func (c QPC) SetRMSN(v uint32)                    { put(c, 0xb0, 23, 0, v) }
func (c QPC) HWSQWQEBBCounter() uint32            { return bits(c, 0xb4, 31, 16) }
func (c QPC) SetHWSQWQEBBCounter(v uint32)        { put(c, 0xb4, 31, 16, v) }
func (c QPC) SWSQWQEBBCounter() uint32            { return bits(c, 0xb4, 15, 0) }
func (c QPC) SetSWSQWQEBBCounter(v uint32)        { put(c, 0xb4, 15, 0, v) }
func (c QPC) HWRQCounter() uint32                 { return be32(c, 0xb8) }
func (c QPC) SetHWRQCounter(v uint32)             { putBE32(c, 0xb8, v) }
func (c QPC) SWRQCounter() uint32                 { return be32(c, 0xbc) }
func (c QPC) SetSWRQCounter(v uint32)             { putBE32(c, 0xbc, v) }
func (c QPC) CGS() bool                           { return bit(c, 0xc4, 16) }
func (c QPC) SetCGS(v bool)                       { putBit(c, 0xc4, 16, v) }
func (c QPC) CSReq() uint32                       { return bits(c, 0xc4, 15, 8) }
func (c QPC) SetCSReq(v uint32)                   { put(c, 0xc4, 15, 8, v) }
func (c QPC) CSRes() uint32                       { return bits(c, 0xc4, 7, 0) }
func (c QPC) SetCSRes(v uint32)                   { put(c, 0xc4, 7, 0, v) }
func (c QPC) DCAccessKey() uint64                 { return be64(c, 0xc8) }
func (c QPC) SetDCAccessKey(v uint64)             { putBE64(c, 0xc8, v) }
func (c QPC) DBRUmemValid() bool                  { return bit(c, 0xd0, 28) }
func (c QPC) SetDBRUmemValid(v bool)              { putBit(c, 0xd0, 28, v) }
