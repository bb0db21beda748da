package rule

// Rules of mlx5 direct verbs, in the library, the driver and the device.
const (
	ForeignDevicesHaveNoDirectVerbs Rule = iota + 512
	DirectAnswerIsMasked
	ScatterFlagsContradict
	DirectFlagsAreKnown
	DirectMasksAreKnown
	DriverTypeNamesAnEnd
	RawRequestsSayTheyAre
	RawRequestsHaveTheirFlags
	OldTimestampsAreBehind
	IncrementsAdd
	TestsSet
	SourcePortIsTaken
	DirectMemoryMasksAreKnown
	ReservedNumbersAreKept
)
