// Package kit is what conformance cases share: an open context with its usual
// objects, buffers between red zones, connected queue pairs, posting and polling
// that check what they get, other processes, and the wire. Its functions fail the
// case with what was tried; they record an observation only where the outcome is
// what a case is about.
//
// Everything that the kit makes is destroyed when the case ends, in reverse order,
// and a refusal to be destroyed fails the case.
//
// # The first ten
//
//   - [NewPair] with [Default]: one context with two queue pairs, connected to each other
//   - [Open]: a context with a PD, for cases that build their objects themselves
//   - [Env.Buffer], which a [Pair] has too: a registered buffer; [Buffer.SGE] is a part of it
//   - [Send], [Write] and [Read]: work requests
//   - [QP.PostAndPoll]: post one request and return the status of its completion
//   - [QP.RecvInto]: post a receive
//   - [PollOne]: the next completion; [ExpectSuccess]: n of them, all with success
//   - [ExpectNoCompletion]: nothing completes for a time, such as [QuietPeriod]
//   - [Buffer.ExpectContents]: the bytes of a buffer and its red zones
//   - [Must]: an error of a call that is not what the case is about
//
// # Objects
//
// Contexts: [OpenIPv4], [OpenIPv6]. Queue pairs: [DefaultFor], [Options], [WithLongTimeout],
// [Env.Pair], [Env.UnconnectedPair], [Env.CreateQP], [QP.BringUp], [QP.StepTo], [MaskFor],
// [Env.NewUD], [Datagram]. Shared receive queues: [Env.CreateSRQ], [SRQ.Recv]. XRC: [NewXRCPair],
// [Env.OpenXRCD], [Env.CreateTarget], [JoinXRC]. Atomics: [CmpSwap], [FetchAdd]. Raw packets:
// [NewSteered], [RawOptions], [Env.NewRaw], [QP.NewFlow], [FlowOf], [EthFlow]. [DestroyOnce]
// destroys an object before the case ends.
//
// # Completions and events
//
// [Poll], [PollWithin], [PollRaw], [Drain], [AwaitCompletions], [AwaitCompletionsWithin],
// [AwaitData], [RecordCompletions], [ExpectInOrder], [ExpectFlushed], [Arm], [AsyncEvent],
// [AwaitPortEvent], [RecordErrno], [CompletionTimeout].
//
// # Memory
//
// [Map], [MapOnce], [MapLazily], [Env.Paged], [AllAccess], [HostWord], [HostWordBytes],
// [ExportedKind], [ExportOnly], [Importer], [Opener], [OpenFile].
//
// # Threads, other processes and hosts
//
// [RunThreads], [JoinThreads], [OpenOtherProcess], [OpenOtherProcessIPv4], [OpenOtherProcessIPv6],
// [StartOtherProcess], [OpenUnprivileged], [OtherProcess.Do], [OtherProcess.Kill],
// [ConnectOtherQPs], [RemoteHost], [ProcessAs], [TestbedAs].
//
// # The wire
//
// [Tap], [TapAll], [TapFrames], [PacketsTo], [Acknowledgements], [PSNs], [Transcript]. Faults:
// [Inject], [ClearRules], [ParseRules], [RuleForPSN], [RuleForOpcode], [DropTo]. Addresses:
// [AddAddress], [AwaitGID], [AwaitNoGID]. Timers: [Env.AckTimer], [TimerSlack], [ExactTime].
// Counters: [Counters], [CounterDelta], [SumOf], [Moving]. What was measured of cards: [Measured],
// [MeasuredVendor], [MeasuredTime], [MeasuredCounter].
//
// # mlx5 below verbs
//
// [Mlx5], [BFReg], [ExpectNoLock], [LockStats], [RecordMMIO], [WritesToBFReg], [BlueFlamePushes],
// [DoorbellValue], [BuildWR], [WriteRawWQE], [PostRaw].
package kit
