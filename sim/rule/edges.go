package rule

// Rules of limits, of each bit of a word, of sums beyond 32 bits, and of what is left when something ends halfway.
const (
	HalvesAreOfTheRegister Rule = iota + 352
	RegisterIsFlushed
	ParentRefusesUnknownBits
	ParentHoldsItsPD
	UnknownUARFlagIsRefused
	NonCachedUARIsShared
	OwnUARIsItsOwn
	FourRegistersOfAPage
	IndependentDomainsHaveTheirPage
	DomainQueuesHaveNoLock
	FreedDomainsAreUsedAgain
	AsyncEventsAreAwaited
	PortsAreChecked
	EventsAreReadInOrder
	QPEventsGoWithTheQP
	SRQEventsGoWithTheSRQ
	CQErrorsGoWithTheCQ
	PrivilegeComesFromTheTopBit
	ArmFindsWhatIsThere
	ModerationWaitsForItsCount
	ModerationReachesItsCount
	ModerationPeriodEnds
	MiniEntriesHaveTheirLength
	MiniEntriesHaveTheirIndex
	DoorbellCoversThoseBefore
	SRQFollowsItsList
	DoorbellRecordIsReadAgain
	AbandonedReceiveIsFilledAnew
	AbandonedReceiveIsUsedAgain
	OlderAtomicsAreReplayed
	OlderReadsAreReplayed
	WriteAddressesHave64Bits
	ReadAddressesHave64Bits
	GatherAddressesHave64Bits
	LandingAddressesHave64Bits
	ScatterAddressesHave64Bits
	AdditionsCarry
	ComparisonsAreWhole
	QKeysMatchInTheirHighHalf
	QKeysMatchInTheirLowHalf
	LimitedMembersDoNotTalk
	PKeysMatchInTheirHighByte
	PacketsAreForThisAddress
	SequenceNAKIsHeard
	BrokenPacketsAreDropped
	RepairIsAtOnce
	WaitingQueuesTakeTurns
)
