package rule

// Rules of the dynamically connected transport.
const (
	AccessKeyIsChecked Rule = iota + 344
	InitiatorTurnsToItsTarget
	TargetOutlivesItsConnections
	TargetNumberComesWithRTR
	EndsAreOfTheDriversType
	TargetTakesNoPosts
	TargetNeedsAnSRQ
)
