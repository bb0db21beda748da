package prm

// HCACap is the general capability page (mlx5_ifc cmd_hca_cap), as far as drivers
// read it for RDMA. log_x fields are powers of two.
type HCACap []byte

// HCACapSize is its length in bytes.
const HCACapSize = 0x1000

func (c HCACap) PageRequestDisable() bool                  { return bit(c, 0x00, 25) }
func (c HCACap) SetPageRequestDisable(v bool)              { putBit(c, 0x00, 25, v) }
func (c HCACap) HCACap2() bool                             { return bit(c, 0x04, 31) }
func (c HCACap) SetHCACap2(v bool)                         { putBit(c, 0x04, 31, v) }
func (c HCACap) VHCAID() uint32                            { return bits(c, 0x04, 15, 0) }
func (c HCACap) SetVHCAID(v uint32)                        { put(c, 0x04, 15, 0, v) }
func (c HCACap) LogMaxSRQSz() uint32                       { return bits(c, 0x10, 31, 24) }
func (c HCACap) SetLogMaxSRQSz(v uint32)                   { put(c, 0x10, 31, 24, v) }
func (c HCACap) LogMaxQPSz() uint32                        { return bits(c, 0x10, 23, 16) }
func (c HCACap) SetLogMaxQPSz(v uint32)                    { put(c, 0x10, 23, 16, v) }
func (c HCACap) EventCap() bool                            { return bit(c, 0x10, 15) }
func (c HCACap) SetEventCap(v bool)                        { putBit(c, 0x10, 15, v) }
func (c HCACap) LogMaxQP() uint32                          { return bits(c, 0x10, 4, 0) }
func (c HCACap) SetLogMaxQP(v uint32)                      { put(c, 0x10, 4, 0, v) }
func (c HCACap) ECESupport() bool                          { return bit(c, 0x14, 28) }
func (c HCACap) SetECESupport(v bool)                      { putBit(c, 0x14, 28, v) }
func (c HCACap) LogMaxSRQ() uint32                         { return bits(c, 0x14, 20, 16) }
func (c HCACap) SetLogMaxSRQ(v uint32)                     { put(c, 0x14, 20, 16, v) }
func (c HCACap) GoBackN() bool                             { return bit(c, 0x14, 6) }
func (c HCACap) SetGoBackN(v bool)                         { putBit(c, 0x14, 6, v) }
func (c HCACap) MaxSGLForOptimizedPerformance() uint32     { return bits(c, 0x18, 31, 24) }
func (c HCACap) SetMaxSGLForOptimizedPerformance(v uint32) { put(c, 0x18, 31, 24, v) }
func (c HCACap) LogMaxCQSz() uint32                        { return bits(c, 0x18, 23, 16) }
func (c HCACap) SetLogMaxCQSz(v uint32)                    { put(c, 0x18, 23, 16, v) }
func (c HCACap) RelaxedOrderingWriteUMR() bool             { return bit(c, 0x18, 15) }
func (c HCACap) SetRelaxedOrderingWriteUMR(v bool)         { putBit(c, 0x18, 15, v) }
func (c HCACap) RelaxedOrderingReadUMR() bool              { return bit(c, 0x18, 14) }
func (c HCACap) SetRelaxedOrderingReadUMR(v bool)          { putBit(c, 0x18, 14, v) }
func (c HCACap) LogMaxCQ() uint32                          { return bits(c, 0x18, 4, 0) }
func (c HCACap) SetLogMaxCQ(v uint32)                      { put(c, 0x18, 4, 0, v) }
func (c HCACap) LogMaxEQSz() uint32                        { return bits(c, 0x1c, 31, 24) }
func (c HCACap) SetLogMaxEQSz(v uint32)                    { put(c, 0x1c, 31, 24, v) }
func (c HCACap) RelaxedOrderingWrite() bool                { return bit(c, 0x1c, 23) }
func (c HCACap) SetRelaxedOrderingWrite(v bool)            { putBit(c, 0x1c, 23, v) }
func (c HCACap) RelaxedOrderingReadPCIEnabled() bool       { return bit(c, 0x1c, 22) }
func (c HCACap) SetRelaxedOrderingReadPCIEnabled(v bool)   { putBit(c, 0x1c, 22, v) }
func (c HCACap) LogMaxMKey() uint32                        { return bits(c, 0x1c, 21, 16) }
func (c HCACap) SetLogMaxMKey(v uint32)                    { put(c, 0x1c, 21, 16, v) }
func (c HCACap) TerminateScatterListMKey() bool            { return bit(c, 0x1c, 9) }
func (c HCACap) SetTerminateScatterListMKey(v bool)        { putBit(c, 0x1c, 9, v) }
func (c HCACap) DumpFillMKey() bool                        { return bit(c, 0x1c, 7) }
func (c HCACap) SetDumpFillMKey(v bool)                    { putBit(c, 0x1c, 7, v) }
func (c HCACap) FastTeardown() bool                        { return bit(c, 0x1c, 4) }
func (c HCACap) SetFastTeardown(v bool)                    { putBit(c, 0x1c, 4, v) }
func (c HCACap) LogMaxEQ() uint32                          { return bits(c, 0x1c, 3, 0) }
func (c HCACap) SetLogMaxEQ(v uint32)                      { put(c, 0x1c, 3, 0, v) }
func (c HCACap) MaxIndirection() uint32                    { return bits(c, 0x20, 31, 24) }
func (c HCACap) SetMaxIndirection(v uint32)                { put(c, 0x20, 31, 24, v) }
func (c HCACap) FixedBufferSize() bool                     { return bit(c, 0x20, 23) }
func (c HCACap) SetFixedBufferSize(v bool)                 { putBit(c, 0x20, 23, v) }
func (c HCACap) LogMaxMRWSz() uint32                       { return bits(c, 0x20, 22, 16) }
func (c HCACap) SetLogMaxMRWSz(v uint32)                   { put(c, 0x20, 22, 16, v) }
func (c HCACap) ForceTeardown() bool                       { return bit(c, 0x20, 15) }
func (c HCACap) SetForceTeardown(v bool)                   { putBit(c, 0x20, 15, v) }
func (c HCACap) UMRExtendedTranslationOffset() bool        { return bit(c, 0x20, 7) }
func (c HCACap) SetUMRExtendedTranslationOffset(v bool)    { putBit(c, 0x20, 7, v) }
func (c HCACap) NullMKey() bool                            { return bit(c, 0x20, 6) }
func (c HCACap) SetNullMKey(v bool)                        { putBit(c, 0x20, 6, v) }
func (c HCACap) LogMaxKLMListSize() uint32                 { return bits(c, 0x20, 5, 0) }
func (c HCACap) SetLogMaxKLMListSize(v uint32)             { put(c, 0x20, 5, 0, v) }
func (c HCACap) QPCExtension() bool                        { return bit(c, 0x24, 29) }
func (c HCACap) SetQPCExtension(v bool)                    { putBit(c, 0x24, 29, v) }
func (c HCACap) ReleaseAllPages() bool                     { return bit(c, 0x28, 26) }
func (c HCACap) SetReleaseAllPages(v bool)                 { putBit(c, 0x28, 26, v) }
func (c HCACap) RoCEAccl() bool                            { return bit(c, 0x28, 22) }
func (c HCACap) SetRoCEAccl(v bool)                        { putBit(c, 0x28, 22, v) }
func (c HCACap) LogMaxRAReqQP() uint32                     { return bits(c, 0x28, 21, 16) }
func (c HCACap) SetLogMaxRAReqQP(v uint32)                 { put(c, 0x28, 21, 16, v) }
func (c HCACap) LogMaxRAResQP() uint32                     { return bits(c, 0x28, 5, 0) }
func (c HCACap) SetLogMaxRAResQP(v uint32)                 { put(c, 0x28, 5, 0, v) }
func (c HCACap) EndPad() bool                              { return bit(c, 0x2c, 31) }
func (c HCACap) SetEndPad(v bool)                          { putBit(c, 0x2c, 31, v) }
func (c HCACap) CCQueryAllowed() bool                      { return bit(c, 0x2c, 30) }
func (c HCACap) SetCCQueryAllowed(v bool)                  { putBit(c, 0x2c, 30, v) }
func (c HCACap) CCModifyAllowed() bool                     { return bit(c, 0x2c, 29) }
func (c HCACap) SetCCModifyAllowed(v bool)                 { putBit(c, 0x2c, 29, v) }
func (c HCACap) CacheLine128byte() bool                    { return bit(c, 0x2c, 27) }
func (c HCACap) SetCacheLine128byte(v bool)                { putBit(c, 0x2c, 27, v) }
func (c HCACap) RTS2RTSQPCountersSetID() bool              { return bit(c, 0x2c, 22) }
func (c HCACap) SetRTS2RTSQPCountersSetID(v bool)          { putBit(c, 0x2c, 22, v) }
func (c HCACap) QCAMReg() bool                             { return bit(c, 0x2c, 16) }
func (c HCACap) SetQCAMReg(v bool)                         { putBit(c, 0x2c, 16, v) }
func (c HCACap) GIDTableSize() uint32                      { return bits(c, 0x2c, 15, 0) }
func (c HCACap) SetGIDTableSize(v uint32)                  { put(c, 0x2c, 15, 0, v) }
func (c HCACap) OutOfSeqCnt() bool                         { return bit(c, 0x30, 31) }
func (c HCACap) SetOutOfSeqCnt(v bool)                     { putBit(c, 0x30, 31, v) }
func (c HCACap) VportCounters() bool                       { return bit(c, 0x30, 30) }
func (c HCACap) SetVportCounters(v bool)                   { putBit(c, 0x30, 30, v) }
func (c HCACap) RetransmissionQCounters() bool             { return bit(c, 0x30, 29) }
func (c HCACap) SetRetransmissionQCounters(v bool)         { putBit(c, 0x30, 29, v) }
func (c HCACap) Debug() bool                               { return bit(c, 0x30, 28) }
func (c HCACap) SetDebug(v bool)                           { putBit(c, 0x30, 28, v) }
func (c HCACap) ModifyRQCounterSetID() bool                { return bit(c, 0x30, 27) }
func (c HCACap) SetModifyRQCounterSetID(v bool)            { putBit(c, 0x30, 27, v) }
func (c HCACap) MaxQPCnt() uint32                          { return bits(c, 0x30, 25, 16) }
func (c HCACap) SetMaxQPCnt(v uint32)                      { put(c, 0x30, 25, 16, v) }
func (c HCACap) PKeyTableSize() uint32                     { return bits(c, 0x30, 15, 0) }
func (c HCACap) SetPKeyTableSize(v uint32)                 { put(c, 0x30, 15, 0, v) }
func (c HCACap) VportGroupManager() bool                   { return bit(c, 0x34, 31) }
func (c HCACap) SetVportGroupManager(v bool)               { putBit(c, 0x34, 31, v) }
func (c HCACap) IBVirt() bool                              { return bit(c, 0x34, 29) }
func (c HCACap) SetIBVirt(v bool)                          { putBit(c, 0x34, 29, v) }
func (c HCACap) NICFlowTable() bool                        { return bit(c, 0x34, 25) }
func (c HCACap) SetNICFlowTable(v bool)                    { putBit(c, 0x34, 25, v) }
func (c HCACap) EswitchManager() bool                      { return bit(c, 0x34, 24) }
func (c HCACap) SetEswitchManager(v bool)                  { putBit(c, 0x34, 24, v) }
func (c HCACap) DeviceMemory() bool                        { return bit(c, 0x34, 23) }
func (c HCACap) SetDeviceMemory(v bool)                    { putBit(c, 0x34, 23, v) }
func (c HCACap) MCAMReg() bool                             { return bit(c, 0x34, 22) }
func (c HCACap) SetMCAMReg(v bool)                         { putBit(c, 0x34, 22, v) }
func (c HCACap) PCAMReg() bool                             { return bit(c, 0x34, 21) }
func (c HCACap) SetPCAMReg(v bool)                         { putBit(c, 0x34, 21, v) }
func (c HCACap) LocalCAAckDelay() uint32                   { return bits(c, 0x34, 20, 16) }
func (c HCACap) SetLocalCAAckDelay(v uint32)               { put(c, 0x34, 20, 16, v) }
func (c HCACap) PortModuleEvent() bool                     { return bit(c, 0x34, 15) }
func (c HCACap) SetPortModuleEvent(v bool)                 { putBit(c, 0x34, 15, v) }
func (c HCACap) EnhancedErrorQCounters() bool              { return bit(c, 0x34, 14) }
func (c HCACap) SetEnhancedErrorQCounters(v bool)          { putBit(c, 0x34, 14, v) }
func (c HCACap) PortsCheck() bool                          { return bit(c, 0x34, 13) }
func (c HCACap) SetPortsCheck(v bool)                      { putBit(c, 0x34, 13, v) }
func (c HCACap) PortType() uint32                          { return bits(c, 0x34, 9, 8) }
func (c HCACap) SetPortType(v uint32)                      { put(c, 0x34, 9, 8, v) }
func (c HCACap) NumPorts() uint32                          { return bits(c, 0x34, 7, 0) }
func (c HCACap) SetNumPorts(v uint32)                      { put(c, 0x34, 7, 0, v) }
func (c HCACap) LogMaxMsg() uint32                         { return bits(c, 0x38, 28, 24) }
func (c HCACap) SetLogMaxMsg(v uint32)                     { put(c, 0x38, 28, 24, v) }
func (c HCACap) GeneralNotificationEvent() bool            { return bit(c, 0x38, 13) }
func (c HCACap) SetGeneralNotificationEvent(v bool)        { putBit(c, 0x38, 13, v) }
func (c HCACap) StatRateSupport() uint32                   { return bits(c, 0x3c, 31, 16) }
func (c HCACap) SetStatRateSupport(v uint32)               { put(c, 0x3c, 31, 16, v) }
func (c HCACap) Init2LAGTXPortAffinity() bool              { return bit(c, 0x3c, 7) }
func (c HCACap) SetInit2LAGTXPortAffinity(v bool)          { putBit(c, 0x3c, 7, v) }
func (c HCACap) CQEVersion() uint32                        { return bits(c, 0x3c, 3, 0) }
func (c HCACap) SetCQEVersion(v uint32)                    { put(c, 0x3c, 3, 0, v) }
func (c HCACap) CompactAddressVector() bool                { return bit(c, 0x40, 31) }
func (c HCACap) SetCompactAddressVector(v bool)            { putBit(c, 0x40, 31, v) }
func (c HCACap) UMRModifyEntitySizeDisabled() bool         { return bit(c, 0x40, 24) }
func (c HCACap) SetUMRModifyEntitySizeDisabled(v bool)     { putBit(c, 0x40, 24, v) }
func (c HCACap) UMRModifyAtomicDisabled() bool             { return bit(c, 0x40, 23) }
func (c HCACap) SetUMRModifyAtomicDisabled(v bool)         { putBit(c, 0x40, 23, v) }
func (c HCACap) UMRIndirectMKeyDisabled() bool             { return bit(c, 0x40, 22) }
func (c HCACap) SetUMRIndirectMKeyDisabled(v bool)         { putBit(c, 0x40, 22, v) }
func (c HCACap) UMRFence() uint32                          { return bits(c, 0x40, 21, 20) }
func (c HCACap) SetUMRFence(v uint32)                      { put(c, 0x40, 21, 20, v) }
func (c HCACap) DrainSigErr() bool                         { return bit(c, 0x40, 16) }
func (c HCACap) SetDrainSigErr(v bool)                     { putBit(c, 0x40, 16, v) }
func (c HCACap) CmdifChecksum() uint32                     { return bits(c, 0x40, 15, 14) }
func (c HCACap) SetCmdifChecksum(v uint32)                 { put(c, 0x40, 15, 14, v) }
func (c HCACap) SctrDataCQE() bool                         { return bit(c, 0x40, 10) }
func (c HCACap) SetSctrDataCQE(v bool)                     { putBit(c, 0x40, 10, v) }
func (c HCACap) SHO() bool                                 { return bit(c, 0x40, 8) }
func (c HCACap) SetSHO(v bool)                             { putBit(c, 0x40, 8, v) }
func (c HCACap) DCT() bool                                 { return bit(c, 0x40, 5) }
func (c HCACap) SetDCT(v bool)                             { putBit(c, 0x40, 5, v) }
func (c HCACap) QoS() bool                                 { return bit(c, 0x40, 4) }
func (c HCACap) SetQoS(v bool)                             { putBit(c, 0x40, 4, v) }
func (c HCACap) EthNetOffloads() bool                      { return bit(c, 0x40, 3) }
func (c HCACap) SetEthNetOffloads(v bool)                  { putBit(c, 0x40, 3, v) }
func (c HCACap) RoCE() bool                                { return bit(c, 0x40, 2) }
func (c HCACap) SetRoCE(v bool)                            { putBit(c, 0x40, 2, v) }
func (c HCACap) Atomic() bool                              { return bit(c, 0x40, 1) }
func (c HCACap) SetAtomic(v bool)                          { putBit(c, 0x40, 1, v) }
func (c HCACap) CQResize() bool                            { return bit(c, 0x44, 30) }
func (c HCACap) SetCQResize(v bool)                        { putBit(c, 0x44, 30, v) }
func (c HCACap) CQModeration() bool                        { return bit(c, 0x44, 29) }
func (c HCACap) SetCQModeration(v bool)                    { putBit(c, 0x44, 29, v) }
func (c HCACap) PG() bool                                  { return bit(c, 0x44, 24) }
func (c HCACap) SetPG(v bool)                              { putBit(c, 0x44, 24, v) }
func (c HCACap) BlockLBMC() bool                           { return bit(c, 0x44, 23) }
func (c HCACap) SetBlockLBMC(v bool)                       { putBit(c, 0x44, 23, v) }
func (c HCACap) CD() bool                                  { return bit(c, 0x44, 19) }
func (c HCACap) SetCD(v bool)                              { putBit(c, 0x44, 19, v) }
func (c HCACap) APM() bool                                 { return bit(c, 0x44, 17) }
func (c HCACap) SetAPM(v bool)                             { putBit(c, 0x44, 17, v) }
func (c HCACap) IMAICL() bool                              { return bit(c, 0x44, 14) }
func (c HCACap) SetIMAICL(v bool)                          { putBit(c, 0x44, 14, v) }
func (c HCACap) QPPacketBased() bool                       { return bit(c, 0x44, 13) }
func (c HCACap) SetQPPacketBased(v bool)                   { putBit(c, 0x44, 13, v) }
func (c HCACap) QKV() bool                                 { return bit(c, 0x44, 9) }
func (c HCACap) SetQKV(v bool)                             { putBit(c, 0x44, 9, v) }
func (c HCACap) PKV() bool                                 { return bit(c, 0x44, 8) }
func (c HCACap) SetPKV(v bool)                             { putBit(c, 0x44, 8, v) }
func (c HCACap) SetDETHSQPN() bool                         { return bit(c, 0x44, 7) }
func (c HCACap) SetSetDETHSQPN(v bool)                     { putBit(c, 0x44, 7, v) }
func (c HCACap) XRC() bool                                 { return bit(c, 0x44, 3) }
func (c HCACap) SetXRC(v bool)                             { putBit(c, 0x44, 3, v) }
func (c HCACap) UD() bool                                  { return bit(c, 0x44, 2) }
func (c HCACap) SetUD(v bool)                              { putBit(c, 0x44, 2, v) }
func (c HCACap) UC() bool                                  { return bit(c, 0x44, 1) }
func (c HCACap) SetUC(v bool)                              { putBit(c, 0x44, 1, v) }
func (c HCACap) RC() bool                                  { return bit(c, 0x44, 0) }
func (c HCACap) SetRC(v bool)                              { putBit(c, 0x44, 0, v) }
func (c HCACap) UAR4K() bool                               { return bit(c, 0x48, 31) }
func (c HCACap) SetUAR4K(v bool)                           { putBit(c, 0x48, 31, v) }
func (c HCACap) UARSz() uint32                             { return bits(c, 0x48, 21, 16) }
func (c HCACap) SetUARSz(v uint32)                         { put(c, 0x48, 21, 16, v) }
func (c HCACap) UmemUID0() bool                            { return bit(c, 0x48, 13) }
func (c HCACap) SetUmemUID0(v bool)                        { putBit(c, 0x48, 13, v) }
func (c HCACap) LogPGSz() uint32                           { return bits(c, 0x48, 7, 0) }
func (c HCACap) SetLogPGSz(v uint32)                       { put(c, 0x48, 7, 0, v) }
func (c HCACap) BF() bool                                  { return bit(c, 0x4c, 31) }
func (c HCACap) SetBF(v bool)                              { putBit(c, 0x4c, 31, v) }
func (c HCACap) DriverVersion() bool                       { return bit(c, 0x4c, 30) }
func (c HCACap) SetDriverVersion(v bool)                   { putBit(c, 0x4c, 30, v) }
func (c HCACap) LogBFRegSize() uint32                      { return bits(c, 0x4c, 20, 16) }
func (c HCACap) SetLogBFRegSize(v uint32)                  { put(c, 0x4c, 20, 16, v) }
func (c HCACap) QPErrorSyndrome() bool                     { return bit(c, 0x4c, 12) }
func (c HCACap) SetQPErrorSyndrome(v bool)                 { putBit(c, 0x4c, 12, v) }
func (c HCACap) MaxWQESzSQ() uint32                        { return bits(c, 0x50, 15, 0) }
func (c HCACap) SetMaxWQESzSQ(v uint32)                    { put(c, 0x50, 15, 0, v) }
func (c HCACap) MaxWQESzRQ() uint32                        { return bits(c, 0x54, 15, 0) }
func (c HCACap) SetMaxWQESzRQ(v uint32)                    { put(c, 0x54, 15, 0, v) }
func (c HCACap) MaxWQESzSQDC() uint32                      { return bits(c, 0x58, 15, 0) }
func (c HCACap) SetMaxWQESzSQDC(v uint32)                  { put(c, 0x58, 15, 0, v) }
func (c HCACap) MaxQPMCG() uint32                          { return bits(c, 0x5c, 24, 0) }
func (c HCACap) SetMaxQPMCG(v uint32)                      { put(c, 0x5c, 24, 0, v) }
func (c HCACap) LogMaxMCG() uint32                         { return bits(c, 0x60, 7, 0) }
func (c HCACap) SetLogMaxMCG(v uint32)                     { put(c, 0x60, 7, 0, v) }
func (c HCACap) LogMaxTransportDomain() uint32             { return bits(c, 0x64, 28, 24) }
func (c HCACap) SetLogMaxTransportDomain(v uint32)         { put(c, 0x64, 28, 24, v) }
func (c HCACap) RelaxedOrderingRead() bool                 { return bit(c, 0x64, 21) }
func (c HCACap) SetRelaxedOrderingRead(v bool)             { putBit(c, 0x64, 21, v) }
func (c HCACap) LogMaxPD() uint32                          { return bits(c, 0x64, 20, 16) }
func (c HCACap) SetLogMaxPD(v uint32)                      { put(c, 0x64, 20, 16, v) }
func (c HCACap) LogMaxXRCD() uint32                        { return bits(c, 0x64, 4, 0) }
func (c HCACap) SetLogMaxXRCD(v uint32)                    { put(c, 0x64, 4, 0, v) }
func (c HCACap) LogMaxRQ() uint32                          { return bits(c, 0x6c, 28, 24) }
func (c HCACap) SetLogMaxRQ(v uint32)                      { put(c, 0x6c, 28, 24, v) }
func (c HCACap) LogMaxSQ() uint32                          { return bits(c, 0x6c, 20, 16) }
func (c HCACap) SetLogMaxSQ(v uint32)                      { put(c, 0x6c, 20, 16, v) }
func (c HCACap) LogMaxRMP() uint32                         { return bits(c, 0x70, 28, 24) }
func (c HCACap) SetLogMaxRMP(v uint32)                     { put(c, 0x70, 28, 24, v) }
func (c HCACap) LogMaxRQT() uint32                         { return bits(c, 0x70, 20, 16) }
func (c HCACap) SetLogMaxRQT(v uint32)                     { put(c, 0x70, 20, 16, v) }
func (c HCACap) LogMaxRQTSize() uint32                     { return bits(c, 0x70, 12, 8) }
func (c HCACap) SetLogMaxRQTSize(v uint32)                 { put(c, 0x70, 12, 8, v) }
func (c HCACap) RoCERWSupported() bool                     { return bit(c, 0x74, 30) }
func (c HCACap) SetRoCERWSupported(v bool)                 { putBit(c, 0x74, 30, v) }
func (c HCACap) LogMaxWQSz() uint32                        { return bits(c, 0x78, 4, 0) }
func (c HCACap) SetLogMaxWQSz(v uint32)                    { put(c, 0x78, 4, 0, v) }
func (c HCACap) DisableLocalLBUC() bool                    { return bit(c, 0x7c, 30) }
func (c HCACap) SetDisableLocalLBUC(v bool)                { putBit(c, 0x7c, 30, v) }
func (c HCACap) DisableLocalLBMC() bool                    { return bit(c, 0x7c, 29) }
func (c HCACap) SetDisableLocalLBMC(v bool)                { putBit(c, 0x7c, 29, v) }
func (c HCACap) GeneralObjTypes() uint64                   { return be64(c, 0x80) }
func (c HCACap) SetGeneralObjTypes(v uint64)               { putBE64(c, 0x80, v) }
func (c HCACap) SQTSFormat() uint32                        { return bits(c, 0x88, 31, 30) }
func (c HCACap) SetSQTSFormat(v uint32)                    { put(c, 0x88, 31, 30, v) }
func (c HCACap) RQTSFormat() uint32                        { return bits(c, 0x88, 29, 28) }
func (c HCACap) SetRQTSFormat(v uint32)                    { put(c, 0x88, 29, 28, v) }
func (c HCACap) CreateQPStartHint() uint32                 { return bits(c, 0x88, 23, 0) }
func (c HCACap) SetCreateQPStartHint(v uint32)             { put(c, 0x88, 23, 0, v) }
func (c HCACap) ATS() bool                                 { return bit(c, 0x8c, 30) }
func (c HCACap) SetATS(v bool)                             { putBit(c, 0x8c, 30, v) }
func (c HCACap) LogMaxUctx() uint32                        { return bits(c, 0x8c, 28, 24) }
func (c HCACap) SetLogMaxUctx(v uint32)                    { put(c, 0x8c, 28, 24, v) }
func (c HCACap) MaxNumEQs() uint32                         { return bits(c, 0x8c, 15, 0) }
func (c HCACap) SetMaxNumEQs(v uint32)                     { put(c, 0x8c, 15, 0, v) }
func (c HCACap) LogUARPageSz() uint32                      { return bits(c, 0x90, 15, 0) }
func (c HCACap) SetLogUARPageSz(v uint32)                  { put(c, 0x90, 15, 0, v) }
func (c HCACap) DeviceFrequencyMHz() uint32                { return be32(c, 0x98) }
func (c HCACap) SetDeviceFrequencyMHz(v uint32)            { putBE32(c, 0x98, v) }
func (c HCACap) DeviceFrequencyKHz() uint32                { return be32(c, 0x9c) }
func (c HCACap) SetDeviceFrequencyKHz(v uint32)            { putBE32(c, 0x9c, v) }
func (c HCACap) NumOfUARsPerPage() uint32                  { return be32(c, 0xa4) }
func (c HCACap) SetNumOfUARsPerPage(v uint32)              { putBE32(c, 0xa4, v) }
func (c HCACap) MiniCQERespStrideIndex() bool              { return bit(c, 0xb4, 3) }
func (c HCACap) SetMiniCQERespStrideIndex(v bool)          { putBit(c, 0xb4, 3, v) }
func (c HCACap) CQE128Always() bool                        { return bit(c, 0xb4, 2) }
func (c HCACap) SetCQE128Always(v bool)                    { putBit(c, 0xb4, 2, v) }
func (c HCACap) CQECompression128() bool                   { return bit(c, 0xb4, 1) }
func (c HCACap) SetCQECompression128(v bool)               { putBit(c, 0xb4, 1, v) }
func (c HCACap) CQECompression() bool                      { return bit(c, 0xb4, 0) }
func (c HCACap) SetCQECompression(v bool)                  { putBit(c, 0xb4, 0, v) }
func (c HCACap) CQECompressionTimeout() uint32             { return bits(c, 0xb8, 31, 16) }
func (c HCACap) SetCQECompressionTimeout(v uint32)         { put(c, 0xb8, 31, 16, v) }
func (c HCACap) CQECompressionMaxNum() uint32              { return bits(c, 0xb8, 15, 0) }
func (c HCACap) SetCQECompressionMaxNum(v uint32)          { put(c, 0xb8, 15, 0, v) }
func (c HCACap) TagMatching() bool                         { return bit(c, 0xbc, 15) }
func (c HCACap) SetTagMatching(v bool)                     { putBit(c, 0xbc, 15, v) }
func (c HCACap) RndvOffloadRC() bool                       { return bit(c, 0xbc, 14) }
func (c HCACap) SetRndvOffloadRC(v bool)                   { putBit(c, 0xbc, 14, v) }
func (c HCACap) LogTagMatchingListSz() uint32              { return bits(c, 0xbc, 12, 8) }
func (c HCACap) SetLogTagMatchingListSz(v uint32)          { put(c, 0xbc, 12, 8, v) }
func (c HCACap) AffiliateNICVportCriteria() uint32         { return bits(c, 0xc0, 31, 24) }
func (c HCACap) SetAffiliateNICVportCriteria(v uint32)     { put(c, 0xc0, 31, 24, v) }
func (c HCACap) NativePortNum() uint32                     { return bits(c, 0xc0, 23, 16) }
func (c HCACap) SetNativePortNum(v uint32)                 { put(c, 0xc0, 23, 16, v) }
func (c HCACap) NumVHCAPorts() uint32                      { return bits(c, 0xc0, 15, 8) }
func (c HCACap) SetNumVHCAPorts(v uint32)                  { put(c, 0xc0, 15, 8, v) }
func (c HCACap) SWOwnerID() bool                           { return bit(c, 0xc0, 1) }
func (c HCACap) SetSWOwnerID(v bool)                       { putBit(c, 0xc0, 1, v) }
func (c HCACap) UctxCap() uint32                           { return be32(c, 0xd4) }
func (c HCACap) SetUctxCap(v uint32)                       { putBE32(c, 0xd4, v) }
