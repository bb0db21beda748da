package rule

// Rules of the library.
const (
	RecordBeforeDoorbell Rule = iota + 1
	SendRecordIsItsOwn
	HalvesAlternate
	SharedRegisterIsLocked
	SingleThreadedIsChecked
	SendQueueHasALimit
	InlineHasALimit
	FenceIsPassedOn
	SolicitedArmIsPassedOn
	ConsumerIndexIsWritten
	CQIsCleanedOfAQP
	RetiresUnsignalled
	EventsAreAwaited
	ReceiveListEnds
	ImmediateIsFlagged
	FreedRegistersQueue
	OldLibraryNumbersRegisters
	LockRuleIsTheLibrarys
)

// Rules of the kernel.
const (
	PDInUseIsBusy Rule = iota + 32
	CQInUseIsBusy
	SRQInUseIsBusy
	ChannelInUseIsBusy
	QPInAGroupIsBusy
	EventsGoWithTheirObject
	RemoteWriteNeedsLocalWrite
	RemoteReadIsAskedFor
	MemlockLimits
	WritableAccessNeedsWritableMemory
	DeregistrationUnpins
	EmptyGIDIsRefused
	TransitionsAreATable
	TransitionsNeedTheirAttributes
	TransitionsTakeNoOtherAttributes
	HighQKeysArePrivileged
	ReadsAreLimitedByTheDevice
	PortEventsReachEveryContext
	FreedKeysHaveTheirOrder
	ReregistrationChangesRights
)

// Rules of on-demand paging: of the kernel's handlers and prefetches, and of the device's queues and their page faults.
const (
	RacedPagesAreLookedUpAgain Rule = iota + 56
	InvalidationReachesTheDevice
	InvalidationAwaitsAccesses
	InvalidationReachesTheLastPage
	FaultsCountTheirPages
	InvalidationsCountTheirPages
	PrefetchesCountTheirPages
	PrefetchIsBestEffort
	AwaitedPrefetchReportsItsError
	PrefetchIsOfThePD
	PrefetchNamesItsKey
	PrefetchForWritingNeedsTheRight
	PrefetchForWritingNeedsWritableMemory
	PrefetchMayBringNothing
	PrefetchBringsPages
	RegistrationTakesWhatIsThere
	EverySegmentIsPaged
	PinnedSegmentsArePresent
	EveryPlaceLeadsToItsChild
	EmptyChildLeavesItsPlace
	GatherWaitsForPages
	LandingWaitsForPages
	WriteWaitsForPages
	ReadWaitsForPages
	AtomicWaitsForPages
	ReceiveWaitsForPages
	LostPagesFailTheRequest
	LostPagesFailThePeer
	LandingIsAskedForAgain
	AnswerReachesItsSide
	FaultNamesItsRequest
	FaultHoldsItsSide
)

// Rules of memory keys, a step of a check each.
const (
	KeyHasItsVariant Rule = iota + 216
	KeyIsInUse
	KeyIsOfThePD
	KeyIsOfTheQP
	AccessDoesNotWrap
	KeyCoversTheAccess
	KeyPermitsTheAccess
	WindowNeedsItsRegion
	ChangedKeyIsOfThePD
	BoundWindowIsNotBound
	UnboundWindowIsOfTheQP
	WindowIsOfItsRegionsPD
	WindowLiesInItsRegion
	WritableWindowNeedsAWritableRegion
	InvalidatedKeyIsInUse
	InvalidatedKeyIsOfThePD
	InvalidatedKeyIsOfTheQP
	InvalidatedKeyAllowsIt
	InvalidatedKeyIsFree
	KeyExists
	NullKeyIsLocal
	KeyIsOfAKnownKind
	ChangedKeyExists
	ChangeIsOfAKnownKind
	ChangedKeyHasItsVariant
	ChangedKeyAllowsIt
	ChangedKeyIsInUse
	BoundRegionHasItsVariant
	BoundRegionIsInUse
	BoundRegionIsOfAKnownKind
	WindowIsNotLongerThanItsEntry
	InvalidatedKeyExists
)

// Rules of the device's queues of completions, events and receives.
const (
	EntriesHaveTheirOwner Rule = iota + 88
	ReadsCountTheirBytes
	OverrunIsReported
	SolicitedEventsAreReported
	OneEventForOneArm
	ArmWidens
	ErrorsCompleteUnsignalled
	PostedReceivesAreFlushed
	LimitIsReportedOnce
	BytesAreCounted
	LastWQEIsReported
)

// Rules of the responder.
const (
	RequestsAreInOrder Rule = iota + 104
	DuplicatesAreNotExecuted
	OpcodesFollow
	OperationIsSupported
	WriteIsEnabled
	ReadIsEnabled
	AtomicIsEnabled
	ResourcesAreLimited
	PayloadFitsTheMTU
	PadBelongsToThePayload
	WriteLengthIsPossible
	FirstPacketChecksTheRange
	PacketsStayInTheWrite
	LastPacketCompletesTheWrite
	NoEarlierPacketCompletesTheWrite
	ReadLengthIsPossible
	ReadIsCheckedWhole
	AtomicsAreAligned
	SendFitsTheReceive
	FailedInvalidationIsAnswered
	JoinedAckMovesOn
	EventsHaveTheirType
	FatalRequestEndsTheQP
	SequenceNAKIsSentOnce
	MissingReceiveIsAnswered
	DuplicateRearmsTheNAK
	DuplicateIsAcknowledged
	ReplayedReadIsATail
	ReplayedAtomicReturnsItsValue
	CommunicationIsReported
	PacketsComeFromThePeer
	PKeysMatch
	DatagramsAreForThePort
	QKeysMatch
	DatagramsBringTheirRoute
	AtomicsExcludeEachOther
	SwapNeedsTheCompared
	DestroyedKeyIsGone
	DetachedQPGetsNothing
	GapsEndTheMessage
	AtomicWriteIsSupported
	FlushIsSupported
	DatagramsFitTheMTU
	WritesNeedTheirRight
	AtomicsNeedTheirRight
	AtomicWriteHasItsLength
	AtomicWritesAreAligned
	AtomicWritesNeedTheirRight
	ReceivesNeedTheirKey
	DatagramReceivesNeedTheirKey
)

// Rules of the requester.
const (
	FenceWaits Rule = iota + 160
	ReadsAreLimited
	WQENamesItsQP
	RequestIsSupported
	DatagramFitsAPacket
	MessageHasALimit
	LocalKeysAreCheckedFirst
	GhostsAreDropped
	StaleResponsesAreDropped
	ReadEndsWithItsLastPacket
	ReadPacketsHaveTheirLength
	ProgressRestoresRetries
	ProgressRestartsTheTimer
	SignalledRequestsComplete
	UnsignalledRequestsAreSilent
	RetriesAreCounted
	RetriesAreAllUsed
	RNRRetriesAreCounted
	SevenRNRRetriesNeverEnd
	RNRTimerIsWaited
	ImpliedNAKAsksAgain
	NAKsHaveTheirStatus
	PostedRequestsAreFlushed
	TimeoutIsTheQPs
	WindowOfPSNsIsKept
	ReadDataIsAnACK
	CreditsAreKept
	InlineDataEndsWithItsWQE
	AtomicWriteRequestIsSupported
	UMRsAreOfConnections
	DatagramsNeedAnAddress
	AtomicsHaveTheirLength
	ReadFitsTheWindowOfPSNs
	FailedBindIsReported
	DataAnswersTheOldest
	ReadDataAnswersARead
	AtomicAnswerIsOfAnAtomic
	AtomicAnswerIsAnACK
	AtomicWriteAnswerIsOnePacket
	AtomicWriteAnswerHasNoData
	AtomicWriteAnswerIsAnACK
)

// Rules of XRC in the device.
const (
	RequestNamesAnXRCSRQ Rule = iota + 201
	NamedSRQIsOfTheDomain
	MessageKeepsToItsSRQ
	ReceivesComeFromTheNamedSRQ
	RemoteKeysAreOfTheSRQsPD
	ReceiveKeysAreOfTheSRQsPD
	ReadKeepsThePDOfItsRequest
	XRCReceivesReportToTheirCQ
	SharedReceivesBearTheIndexOfTheirSRQ
	InitiatorTakesNoRequests
	EachPacketNamesTheSRQ
	RetransmissionNamesTheSRQ
	DomainWithQPsIsBusy
)

// Rules of XRC in the kernel.
const (
	DomainOfAFileIsShared Rule = iota + 256
	ExclusiveOpenIsExclusive
	DomainIsMadeOnRequest
	DomainHandleInUseIsBusy
	TargetIsOpenedInItsDomain
	TargetLivesToItsLastHandle
	TargetEndsWithItsLastProcess
	TargetEventsReachItsHandles
)

// sentences say what each rule is.
var sentences = [...]string{
	RacedPagesAreLookedUpAgain:            "Pages that an invalidation overtakes, before the device has them, are looked up again",
	InvalidationReachesTheDevice:          "An invalidation takes pages away from the device before they change",
	InvalidationAwaitsAccesses:            "An invalidation ends when the accesses under way have",
	InvalidationReachesTheLastPage:        "An invalidation reaches the last page of its range",
	FaultsCountTheirPages:                 "Page faults are counted by their pages",
	InvalidationsCountTheirPages:          "Invalidations are counted by their pages",
	PrefetchesCountTheirPages:             "Prefetches are counted by their pages",
	PrefetchIsBestEffort:                  "A prefetch that nobody waits for does not fail for its pages",
	AwaitedPrefetchReportsItsError:        "A prefetch that is waited for fails for pages that cannot be had",
	PrefetchIsOfThePD:                     "A prefetch of another PD's region is refused",
	PrefetchNamesItsKey:                   "A prefetch by a key with another low byte is refused",
	PrefetchForWritingNeedsTheRight:       "A prefetch for writing of a region without the right is refused",
	PrefetchForWritingNeedsWritableMemory: "A prefetch for writing of memory that cannot be written fails",
	PrefetchMayBringNothing:               "A prefetch without faults brings no page into memory",
	PrefetchBringsPages:                   "A prefetch that is waited for brings its pages into memory",
	RegistrationTakesWhatIsThere:          "A registration on demand brings no page into memory",
	EverySegmentIsPaged:                   "A fault of a work request brings the pages of all its segments",
	PinnedSegmentsArePresent:              "A segment of pinned memory needs no pages",
	EveryPlaceLeadsToItsChild:             "Each GiB of a whole address space that was accessed leads to its child",
	EmptyChildLeavesItsPlace:              "A child of a whole address space without pages leaves its place",
	GatherWaitsForPages:                   "A request whose data is absent waits for it",
	LandingWaitsForPages:                  "A READ whose buffer is absent waits for it",
	WriteWaitsForPages:                    "A WRITE to absent memory is asked for again until it is there",
	ReadWaitsForPages:                     "A READ of absent memory is asked for again until it is there",
	AtomicWaitsForPages:                   "An atomic on absent memory is asked for again until it is there",
	ReceiveWaitsForPages:                  "A SEND into absent memory is asked for again until it is there",
	LostPagesFailTheRequest:               "A request whose pages cannot be had fails",
	LostPagesFailThePeer:                  "A peer's request of which pages cannot be had fails",
	LandingIsAskedForAgain:                "Data that found no place is asked for again",
	AnswerReachesItsSide:                  "The driver's answer resumes what has met the page fault",
	FaultNamesItsRequest:                  "A page fault names the work request that has met it",
	FaultHoldsItsSide:                     "A responder that has met an absent page carries nothing out before the driver has answered",

	RecordBeforeDoorbell:    "The doorbell record is written before the doorbell is rung",
	SendRecordIsItsOwn:      "A send counts in the send counter of the doorbell record",
	HalvesAlternate:         "Successive posts use the two halves of a register in turn",
	SharedRegisterIsLocked:  "A register that several queues ring has a lock",
	SingleThreadedIsChecked: "Two threads inside a queue that was promised to one end the process",
	SendQueueHasALimit:      "A full send queue refuses a request with ENOMEM",
	InlineHasALimit:         "Inline data above max_inline_data is refused",
	FenceIsPassedOn:         "A request with IBV_SEND_FENCE carries the fence in its WQE",
	SolicitedArmIsPassedOn:  "A CQ armed for solicited events only is armed for no others",
	ConsumerIndexIsWritten:  "Polling writes the consumer index to the doorbell record",
	CQIsCleanedOfAQP:        "Completions of a queue that is reset or destroyed leave its CQs",
	RetiresUnsignalled:      "A completion retires the unsignalled requests before it",
	EventsAreAwaited:        "Destroying a CQ waits until its events are acknowledged",
	ReceiveListEnds:         "A receive with fewer SGEs than its WQE has room for ends its list",
	ImmediateIsFlagged:      "A completion with immediate data says so",

	FreedRegistersQueue:        "Freed registers of thread domains are taken again in the order in which they were freed",
	OldLibraryNumbersRegisters: "A library of the static generation gives a thread domain the free register with the lowest number",
	LockRuleIsTheLibrarys:      "Which static registers are locked follows the rule of the library, not of another version",

	DomainOfAFileIsShared:        "Who opens an XRC domain by the same file gets the same domain",
	ExclusiveOpenIsExclusive:     "O_EXCL refuses an XRC domain that there is: EINVAL",
	DomainIsMadeOnRequest:        "Without O_CREAT no XRC domain is made for a file: EAGAIN",
	DomainHandleInUseIsBusy:      "A handle of an XRC domain with which an object was made cannot be closed: EBUSY",
	TargetIsOpenedInItsDomain:    "A target QP is opened through its own XRC domain only: EINVAL",
	TargetLivesToItsLastHandle:   "A target QP lives until its last handle is destroyed",
	TargetEndsWithItsLastProcess: "A target QP ends when no process has a handle of it",
	TargetEventsReachItsHandles:  "Events of a target QP reach who made it",

	PDInUseIsBusy:                     "A PD with objects on it cannot be deallocated: EBUSY",
	CQInUseIsBusy:                     "A CQ that queues use cannot be destroyed: EBUSY",
	SRQInUseIsBusy:                    "An SRQ with QPs on it cannot be destroyed: EBUSY",
	ChannelInUseIsBusy:                "A completion channel that CQs report to cannot be destroyed: EBUSY",
	QPInAGroupIsBusy:                  "A QP in a multicast group cannot be destroyed: EBUSY",
	EventsGoWithTheirObject:           "A completion channel drops the events of a CQ that is destroyed",
	RemoteWriteNeedsLocalWrite:        "Remote write or atomic access without local write is refused",
	RemoteReadIsAskedFor:              "A region without remote read cannot be read remotely",
	MemlockLimits:                     "A process without privilege pins no more than its memlock limit",
	WritableAccessNeedsWritableMemory: "Write access to memory that is mapped read-only is refused",
	DeregistrationUnpins:              "Deregistered memory is unpinned",
	EmptyGIDIsRefused:                 "An address with an empty GID index is refused",
	TransitionsAreATable:              "A QP takes the transitions of the table and no others",
	TransitionsNeedTheirAttributes:    "A transition without an attribute that it needs is refused",
	TransitionsTakeNoOtherAttributes:  "A transition with an attribute that it does not take is refused",
	HighQKeysArePrivileged:            "A Q_Key with the top bit set is for privileged processes",
	ReadsAreLimitedByTheDevice:        "A max_rd_atomic above what the device can is refused",
	PortEventsReachEveryContext:       "Events of the port reach every open context",
	ReregistrationChangesRights:       "Reregistration with other rights changes the rights",
	FreedKeysHaveTheirOrder:           "Memory keys of deregistered regions are taken again in the order of the driver's time",

	KeyHasItsVariant:                   "A key is valid with its own variant byte only",
	KeyIsInUse:                         "A free key gives no access",
	KeyIsOfThePD:                       "A key gives access to queues of its PD only",
	KeyIsOfTheQP:                       "A window of type 2 gives access to the QP that it is bound to only",
	AccessDoesNotWrap:                  "An access beyond the last address is refused",
	KeyCoversTheAccess:                 "An access outside the key's range is refused",
	KeyPermitsTheAccess:                "An access for which the key lacks the right is refused",
	WindowNeedsItsRegion:               "A window gives no access when the key of its region is free",
	ChangedKeyIsOfThePD:                "A work request changes keys of its queue's PD only",
	BoundWindowIsNotBound:              "A window of type 2 that is bound is not bound again",
	UnboundWindowIsOfTheQP:             "A window of type 2 is invalidated by the QP that it is bound to only",
	WindowIsOfItsRegionsPD:             "A window is bound to a region of its PD only",
	WindowLiesInItsRegion:              "A window does not reach beyond its region",
	WritableWindowNeedsAWritableRegion: "A window with remote write needs a region with local write",
	InvalidatedKeyIsInUse:              "A SEND does not invalidate a key that is free",
	InvalidatedKeyIsOfThePD:            "A SEND does not invalidate a key of another PD",
	InvalidatedKeyIsOfTheQP:            "A SEND does not invalidate a window that is bound to another QP",
	InvalidatedKeyAllowsIt:             "A SEND does not invalidate a key that does not allow it",
	InvalidatedKeyIsFree:               "A key that a SEND has invalidated gives no access",
	KeyExists:                          "A key that does not exist gives no access",
	NullKeyIsLocal:                     "The key of a null region gives no remote access",
	KeyIsOfAKnownKind:                  "A key that leads nowhere gives no access",
	ChangedKeyExists:                   "A work request that changes a key that does not exist fails",
	ChangeIsOfAKnownKind:               "A work request changes only fields of a key that the device can change",
	ChangedKeyHasItsVariant:            "A work request that keeps the variant byte of a key names it by that byte",
	ChangedKeyAllowsIt:                 "A work request changes only keys that allow it",
	ChangedKeyIsInUse:                  "A work request that asks for a key in use does not change a free one",
	BoundRegionHasItsVariant:           "A window is bound to a region by the region's own variant byte only",
	BoundRegionIsInUse:                 "A window is not bound to a region whose key is free",
	BoundRegionIsOfAKnownKind:          "A window is bound to a region of host memory only",
	WindowIsNotLongerThanItsEntry:      "A window is no longer than the entry that it is bound by",
	InvalidatedKeyExists:               "A SEND that invalidates a key that does not exist fails",

	EntriesHaveTheirOwner:      "An entry of a CQ has the owner bit of its pass through the ring",
	ReadsCountTheirBytes:       "The byte count of a READ is in its completion",
	OverrunIsReported:          "A completion without room in the CQ is reported",
	SolicitedEventsAreReported: "A CQ armed for solicited events reports a solicited one",
	OneEventForOneArm:          "A CQ reports one event for each arm",
	ArmWidens:                  "An arm for solicited events does not narrow an earlier one for any",
	ErrorsCompleteUnsignalled:  "A request that fails completes, signalled or not",
	PostedReceivesAreFlushed:   "A QP in ERR completes the receives that are posted with a flush error",
	LimitIsReportedOnce:        "An SRQ reports that it is below its limit once for each arming",
	BytesAreCounted:            "A receive completes with the number of bytes that arrived",
	LastWQEIsReported:          "A QP with an SRQ that goes to ERR reports that it takes no more receives",

	RequestsAreInOrder:               "A request behind a gap is not executed",
	DuplicatesAreNotExecuted:         "A repeated request is not executed again",
	OpcodesFollow:                    "A packet that continues no message is refused",
	OperationIsSupported:             "A device without atomics refuses them",
	WriteIsEnabled:                   "A WRITE to a QP without remote write is refused",
	ReadIsEnabled:                    "A READ from a QP without remote read is refused",
	AtomicIsEnabled:                  "An atomic to a QP without remote atomic is refused",
	ResourcesAreLimited:              "A READ beyond max_dest_rd_atomic is refused",
	PayloadFitsTheMTU:                "A first or middle packet has as many bytes as the path MTU",
	PadBelongsToThePayload:           "The pad count is the one that belongs to the payload",
	WriteLengthIsPossible:            "A WRITE announces no more than 2 GiB and no less than its first packet brings",
	FirstPacketChecksTheRange:        "The first packet of a WRITE is refused when its range goes beyond the key's",
	PacketsStayInTheWrite:            "Packets of a WRITE stay within the length that its RETH announces",
	LastPacketCompletesTheWrite:      "The last packet of a WRITE completes the length that its RETH announces",
	NoEarlierPacketCompletesTheWrite: "No packet before the last completes a WRITE",
	ReadLengthIsPossible:             "A READ of more than 2 GiB is refused",
	ReadIsCheckedWhole:               "A READ whose range is not all allowed is refused before any of it is sent",
	AtomicsAreAligned:                "An atomic to an address that is no multiple of 8 is refused",
	SendFitsTheReceive:               "A SEND longer than its receive fails both sides",
	FailedInvalidationIsAnswered:     "A SEND whose key cannot be invalidated fails",
	JoinedAckMovesOn:                 "An ACK that joins one which is due acknowledges what came last",
	EventsHaveTheirType:              "A request that is refused is reported by the event of its kind",
	FatalRequestEndsTheQP:            "A request that is refused moves the responder to ERR",
	SequenceNAKIsSentOnce:            "There is one sequence NAK until the missing packet comes",
	MissingReceiveIsAnswered:         "A SEND that finds no receive is answered with an RNR NAK",
	DuplicateRearmsTheNAK:            "After a duplicate a gap is reported anew",
	DuplicateIsAcknowledged:          "A duplicate that asks for it is acknowledged",
	ReplayedReadIsATail:              "A repeated READ is served only as the rest of the one that was served",
	ReplayedAtomicReturnsItsValue:    "A repeated atomic returns what it returned first",
	CommunicationIsReported:          "A responder in RTR reports the first packet",
	PacketsComeFromThePeer:           "Packets from elsewhere than the peer's address are dropped",
	PKeysMatch:                       "A packet with a P_Key that does not match is dropped",
	DatagramsAreForThePort:           "A datagram for an address that the port does not have is dropped",
	QKeysMatch:                       "A datagram with another Q_Key is dropped",
	DatagramsBringTheirRoute:         "A datagram arrives behind its routing header",
	AtomicsExcludeEachOther:          "Atomics to one address are carried out one after the other",
	SwapNeedsTheCompared:             "Compare and swap without equality changes nothing",
	DestroyedKeyIsGone:               "No access by the key of a deregistered region reaches memory",
	DetachedQPGetsNothing:            "A QP that has left a multicast group gets none of its datagrams",
	GapsEndTheMessage:                "On UC a message of which a packet is missing is dropped",
	AtomicWriteIsSupported:           "A device without ATOMIC WRITE refuses it",
	FlushIsSupported:                 "A device without FLUSH refuses it",
	DatagramsFitTheMTU:               "A datagram with more payload than the MTU is dropped",
	WritesNeedTheirRight:             "A WRITE by a key without remote write is refused",
	AtomicsNeedTheirRight:            "An atomic by a key without remote atomic is refused",
	AtomicWriteHasItsLength:          "An ATOMIC WRITE that announces another length than 8 bytes is refused",
	AtomicWritesAreAligned:           "An ATOMIC WRITE to an address that is no multiple of 8 is refused",
	AtomicWritesNeedTheirRight:       "An ATOMIC WRITE by a key without remote write is refused",
	ReceivesNeedTheirKey:             "A SEND for a receive with a wrong local key fails both sides",
	DatagramReceivesNeedTheirKey:     "A datagram for a receive with a wrong local key fails the receive",

	FenceWaits:                    "A fenced request waits for the READs before it",
	ReadsAreLimited:               "A requester has no more than max_rd_atomic READs outstanding",
	WQENamesItsQP:                 "A WQE that names another QP is not carried out",
	RequestIsSupported:            "A device without atomics sends none",
	DatagramFitsAPacket:           "A datagram longer than a packet is not sent",
	MessageHasALimit:              "A message longer than max_msg_sz fails by itself",
	LocalKeysAreCheckedFirst:      "A request with a wrong local key fails before any of it is sent",
	GhostsAreDropped:              "A response for a PSN that is not outstanding is dropped",
	StaleResponsesAreDropped:      "Of a READ that was asked for again only the next response counts",
	ReadEndsWithItsLastPacket:     "A READ response that ends too early or too late fails the request",
	ReadPacketsHaveTheirLength:    "A READ response with fewer bytes than its place asks for fails the request",
	ProgressRestoresRetries:       "An acknowledgement restores the retries",
	ProgressRestartsTheTimer:      "An acknowledgement restarts the timer",
	SignalledRequestsComplete:     "Each signalled request has a completion",
	UnsignalledRequestsAreSilent:  "An unsignalled request has no completion",
	RetriesAreCounted:             "A requester gives up after retry_cnt retries",
	RetriesAreAllUsed:             "A requester uses all its retries",
	RNRRetriesAreCounted:          "A requester gives up after rnr_retry retries",
	SevenRNRRetriesNeverEnd:       "A requester with rnr_retry 7 never gives up",
	RNRTimerIsWaited:              "A requester waits as long as an RNR NAK says",
	ImpliedNAKAsksAgain:           "An ACK behind a READ without response has it asked for again",
	NAKsHaveTheirStatus:           "Each NAK code maps to its status",
	PostedRequestsAreFlushed:      "A QP in ERR completes what is posted with a flush error",
	TimeoutIsTheQPs:               "The local ACK timeout is between the QP's and four times it",
	WindowOfPSNsIsKept:            "No more than 2^23 PSNs are outstanding",
	ReadDataIsAnACK:               "A READ response whose AETH is that of a NAK fails the request",
	CreditsAreKept:                "A requester sends no message that takes a receive beyond its end-to-end credits",
	InlineDataEndsWithItsWQE:      "A WQE whose inline data does not end with it fails",
	AtomicWriteRequestIsSupported: "A device without ATOMIC WRITE sends none",
	UMRsAreOfConnections:          "A UD QP changes no memory keys",
	DatagramsNeedAnAddress:        "A datagram without a source address is not sent",
	AtomicsHaveTheirLength:        "An atomic with a local buffer of other than 8 bytes fails by itself",
	ReadFitsTheWindowOfPSNs:       "A READ has no more than 2^22 response packets",
	FailedBindIsReported:          "A bind or a local invalidation that is refused completes in error",
	DataAnswersTheOldest:          "Data answers the oldest request that is outstanding",
	ReadDataAnswersARead:          "The data of a READ does not answer an atomic",
	AtomicAnswerIsOfAnAtomic:      "The answer to an atomic does not answer a READ",
	AtomicAnswerIsAnACK:           "An answer to an atomic whose AETH is that of a NAK fails the request",
	AtomicWriteAnswerIsOnePacket:  "An ATOMIC WRITE is answered by one READ response packet",
	AtomicWriteAnswerHasNoData:    "The answer to an ATOMIC WRITE has no data",
	AtomicWriteAnswerIsAnACK:      "An answer to an ATOMIC WRITE whose AETH is that of a NAK fails the request",

	RequestNamesAnXRCSRQ:                 "An XRC request that names no XRC SRQ is refused",
	NamedSRQIsOfTheDomain:                "An XRC request that names an SRQ of another domain is refused",
	MessageKeepsToItsSRQ:                 "An XRC message whose packets name different SRQs is refused",
	ReceivesComeFromTheNamedSRQ:          "An XRC message takes its receive from the SRQ that it names",
	RemoteKeysAreOfTheSRQsPD:             "A remote key of an XRC request is of the PD of the SRQ that it names",
	ReceiveKeysAreOfTheSRQsPD:            "The keys of an XRC SRQ's receives are of the SRQ's PD",
	ReadKeepsThePDOfItsRequest:           "The data of an XRC READ is read in the PD of the SRQ that the request has named",
	XRCReceivesReportToTheirCQ:           "Receives of an XRC SRQ complete to the SRQ's CQ",
	SharedReceivesBearTheIndexOfTheirSRQ: "A completion of an XRC SRQ's receive finds the SRQ",
	InitiatorTakesNoRequests:             "An XRC initiator takes no requests and a target no responses",
	EachPacketNamesTheSRQ:                "Each request packet of XRC names the SRQ, not the first of a message alone",
	RetransmissionNamesTheSRQ:            "An XRC request that is sent again names the SRQ again",
	DomainWithQPsIsBusy:                  "An XRC domain with a QP is not deallocated",

	IRQPollHasABudget:                  "A CQ that is polled by softirq has a budget of 256, and others of the CPU have their turn",
	PollBatchIs16:                      "A CQ that ib_core polls is polled in batches of 16",
	DirectBatchIs8:                     "The owner of a Direct CQ polls it in batches of 8",
	ShortBatchEnds:                     "A batch that is not full ends the polling of a CQ",
	ArmFollowsThePoll:                  "A CQ is armed when it has been polled empty, not before",
	MissedEventsAreHandled:             "A CQ in which an arm has found completions is polled again",
	FullBudgetIsNotRearmed:             "A work function that has used its budget up queues itself again and arms nothing",
	IRQPollIsScheduledOnce:             "A CQ is once in the list of the CQs that a softirq polls",
	OneArmOneEvent:                     "An armed CQ of the kernel fires once",
	EQIsArmedAgain:                     "An interrupt arms its event queue again",
	EQHasABudget:                       "An interrupt takes no more than 128 events",
	DirectIsNeverArmed:                 "A Direct CQ is never armed",
	BoundWorkStaysOnItsCPU:             "Work of a bound workqueue runs on the CPU that queued it",
	PoolsGrow:                          "A pool whose workers are all busy makes another one",
	BlockedWorkersAreReplaced:          "When the only worker of a pool that runs sleeps, another one takes the items that wait",
	WorkIsNotReentrant:                 "A work item does not run twice at once",
	PendingIsClearedFirst:              "A work item can be queued again from the moment at which it runs",
	WorkersAreLIFO:                     "The worker that became idle last is woken first",
	SoftirqsEnd:                        "Softirqs that do not end are handed over to ksoftirqd",
	HalvesAreOfTheRegister:             "The halves of a register are used in turn by all queues that ring it",
	RegisterIsFlushed:                  "A store to a register is flushed before the call returns",
	ParentRefusesUnknownBits:           "A parent domain with an unknown comp_mask bit is refused",
	ParentHoldsItsPD:                   "A PD under a parent domain cannot be deallocated: EBUSY",
	UnknownUARFlagIsRefused:            "A UAR of an undefined kind is refused",
	NonCachedUARIsShared:               "Who asks for the non-cached UAR gets the one of the context",
	OwnUARIsItsOwn:                     "A dedicated non-cached UAR is not the one of the context",
	FourRegistersOfAPage:               "Four dedicated non-cached registers come from one page",
	IndependentDomainsHaveTheirPage:    "Each independent thread domain has a page of its own",
	DomainQueuesHaveNoLock:             "A queue of a thread domain has no lock",
	FreedDomainsAreUsedAgain:           "A freed register of a thread domain is taken again before a page is mapped",
	AsyncEventsAreAwaited:              "Destroying a QP waits until its asynchronous events are acknowledged",
	PortsAreChecked:                    "A query of a port that does not exist is refused",
	EventsAreReadInOrder:               "Events are read in the order in which they came",
	QPEventsGoWithTheQP:                "Asynchronous events of a QP that is destroyed are dropped",
	SRQEventsGoWithTheSRQ:              "Asynchronous events of an SRQ that is destroyed are dropped",
	CQErrorsGoWithTheCQ:                "Asynchronous events of a CQ that is destroyed are dropped",
	PrivilegeComesFromTheTopBit:        "Every Q_Key below 2^31 is for everybody",
	ArmFindsWhatIsThere:                "An arm reports a completion that came before it and was not polled",
	ModerationWaitsForItsCount:         "A moderated CQ holds its event back until there are cq_count completions",
	ModerationReachesItsCount:          "A moderated CQ holds its event back no longer than until there are cq_count completions",
	ModerationPeriodEnds:               "A moderated CQ reports its event when cq_period has passed",
	MiniEntriesHaveTheirLength:         "A compressed completion keeps its own byte count",
	MiniEntriesHaveTheirIndex:          "A compressed completion keeps its own WQE counter",
	DoorbellCoversThoseBefore:          "A doorbell counts for the requests before the one that it names",
	SRQFollowsItsList:                  "An SRQ follows next_wqe_index, not the order of the ring",
	DoorbellRecordIsReadAgain:          "A receive queue that runs dry reads its doorbell record again",
	AbandonedReceiveIsFilledAnew:       "A receive of which a part arrived is filled from its beginning",
	AbandonedReceiveIsUsedAgain:        "A receive of which a part arrived is used for the next message",
	OlderAtomicsAreReplayed:            "A repeated atomic is answered again though newer ones were carried out",
	OlderReadsAreReplayed:              "A repeated READ is answered again though newer ones were carried out",
	WriteAddressesHave64Bits:           "The packets of a WRITE go to addresses of 64 bits",
	ReadAddressesHave64Bits:            "The packets of a READ come from addresses of 64 bits",
	GatherAddressesHave64Bits:          "A request gathers from addresses of 64 bits",
	LandingAddressesHave64Bits:         "The data of a READ lands at addresses of 64 bits",
	ScatterAddressesHave64Bits:         "A SEND is scattered to addresses of 64 bits",
	AdditionsCarry:                     "A fetch and add carries over all 64 bits",
	ComparisonsAreWhole:                "Compare and swap compares all 64 bits",
	QKeysMatchInTheirHighHalf:          "A datagram whose Q_Key differs in the high half is dropped",
	QKeysMatchInTheirLowHalf:           "A datagram whose Q_Key differs in the low half is dropped",
	LimitedMembersDoNotTalk:            "Packets between limited members of a partition are dropped",
	PKeysMatchInTheirHighByte:          "A packet whose P_Key differs in the high byte is dropped",
	PacketsAreForThisAddress:           "A packet of the peer for another address than the QP's is dropped",
	SequenceNAKIsHeard:                 "A sequence NAK has the missing packet sent again before the timer runs out",
	BrokenPacketsAreDropped:            "A packet whose ICRC is wrong is dropped",
	RepairIsAtOnce:                     "What a sequence NAK asks for is sent again within a few round trips",
	InvalidIsSaid:                      "A call whose arguments are wrong says EINVAL",
	BusyIsSaid:                         "A call on an object that is in use says EBUSY",
	NoRoomIsSaid:                       "A call that finds no room says ENOMEM",
	NoSupportIsSaid:                    "A call that the device, kernel or library does not have says EOPNOTSUPP",
	NoObjectIsSaid:                     "A call that names nothing which is there says ENOENT",
	NoRightIsSaid:                      "A call without a right that it needs says EPERM",
	NoMemoryThereIsSaid:                "A call on memory that is not mapped says EFAULT",
	NoDataIsSaid:                       "A query of an empty entry says ENODATA",
	RequestKeepsItsID:                  "A completion has the wr_id of its request",
	CompletionNamesItsQP:               "A completion has the number of its QP",
	SourceQPIsReported:                 "The completion of a datagram has the number of the QP that sent it",
	GRHIsFlagged:                       "The completion of a datagram says whether it has a routing header",
	ReceiveSaysItsKind:                 "The completion of a receive says what took it, a message or a WRITE",
	RequestSaysItsKind:                 "The completion of a request says which operation it was",
	PortHasItsLinkLayer:                "A port says its link layer",
	GIDTableHasAnEnd:                   "A GID outside the table is refused",
	PKeyTableHasAnEnd:                  "A P_Key outside the table is refused",
	AbsentPKeyHasNoIndex:               "A P_Key that the table does not have has no index",
	PortsAreCountedTwice:               "The wide count of ports is the narrow one",
	PagingCapsAreConsistent:            "A device that pages for a transport says that it pages",
	LastEventHasAName:                  "Every defined event has a name",
	ClosedContextUnmaps:                "A context that is closed unmaps its pages",
	OrderOfDataIsAKnownBit:             "What is promised of the order of data is a defined bit",
	SRQNumbersHave24Bits:               "The number of an SRQ has 24 bits",
	RegisterAddressIsItsOwn:            "A UAR begins at its page",
	NewAddressIsReported:               "A new address of the port is reported",
	ReregistrationIsReported:           "What a subnet manager that lost its clients asks for is reported",
	TimeoutZeroIsNone:                  "A timeout of 0 never ends",
	SendOpsAreOfTheType:                "Operations of the extended way to post are those of the type",
	DomainsComeInPairs:                 "Two thread domains share a page",
	GIDHasItsType:                      "An entry of the GID table says its type",
	WaitingQueuesTakeTurns:             "Send queues that wait for a processing unit get it in the order in which they came",
	RequestsWithoutListenerAreRejected: "A connection request for which nobody listens is rejected",
	StaleConnectionsAreRefused:         "A connection request from a QP that is known to be connected is refused as stale",
	RepeatedRequestsAreAnsweredByMRA:   "A connection request that comes again before its answer is answered by a MRA",
	RepeatedRepliesAreAnsweredByRTU:    "A reply that comes again is answered by the RTU again",
	MRAExtendsTheTimeout:               "A MRA extends the time in which the answer must come",
	DREPWaitsForTheProgram:             "A DREQ is answered when the program disconnects",
	RequestsAreSentAgain:               "A connection request without answer is sent again",
	ListenersHaveTheirAddress:          "A listener that is bound to an address takes requests for that address only",
	WildcardsListenEverywhere:          "A wildcard listener listens on every device",
	PortSpacesAreApart:                 "A port number of one port space is free in the others",
	LowPortsArePrivileged:              "A port below 1024 is bound with the right to do so only",
	BoundPortsAreTaken:                 "A port of an address that is bound cannot be bound again",
	RequestDataArrives:                 "Private data of a connection request arrives",
	DepthsAreExchanged:                 "Initiator depth and responder resources of a request are exchanged for its receiver",
	StartingPSNIsThePeers:              "A QP expects packets from its own Starting PSN on",
	BacklogIsALimit:                    "No more connection requests than the backlog wait to be taken",
	MigrationTakesEventsAlong:          "Events of an id that wait move along to its new channel",
	TOSCountsBeforeTheRoute:            "A type of service that is set when the route is resolved changes nothing",
	DatagramServicesHaveAKey:           "The Q_Key of a datagram service is that of its QP",
	EventsAreAwaitedByDestroy:          "The end of an id waits for its events to be acknowledged",
	RefusedConnectionsEndTheirQP:       "The QP of a connection that is refused goes to ERR",
	TimewaitHasItsTime:                 "A connection leaves timewait after the time of an acknowledgement",
	SendOnlyMembersAreNotAttached:      "A member that only sends receives nothing of its group",
	AddressErrorsWaitForTheTimeout:     "An address that does not resolve is reported when its timeout is over",
	EventsMakeChannelsReadable:         "A channel is readable when an event waits",
	LocalPortsHaveTheirRange:           "A port that the kernel chooses is one of the local range",
	BindNeedsAnOwnAddress:              "An id is bound to an address of the machine only",
	ListenChecksReusedPorts:            "A listener has its address and port for itself, also with reuseaddr",
	ResolutionFillsTheSource:           "An address that is resolved gives the id its source",
	FlowLabelIsOfThePorts:              "The flow label of a connection is the hash of its ports",
	EstablishmentIsReported:            "A RTU is reported to the program",
	SecondDisconnectSucceeds:           "A connection that is disconnected can be disconnected again",
	ClosedChannelsEndTheirIDs:          "The ids of a channel that is closed end",
	DatagramServicesAreRefused:         "A request for a service of datagrams that nobody offers is answered",
}
