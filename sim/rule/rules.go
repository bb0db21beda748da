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

// Rules of on-demand paging: of the kernel's handlers and prefetches, and of the device's queues
// and their page faults.
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
