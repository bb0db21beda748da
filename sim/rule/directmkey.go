package rule

// Rules of what libraries and drivers export and allocate, of keys that programs give entries, and
// of copies by the device.
const (
	FreedDMIsRevoked Rule = iota + 492
	DataDirectIsAsked
	BuffersHaveTheirPD
	PlainBuffersHaveNoFD
	ListedKeysHaveTheirRights
	ListedKeysAreOfThePD
	RoundsHaveTheirStride
	EntriesHaveTheirOrder
	CopiesNeedAWritableTarget
	CopiesCompleteAsSuch
	CopiesHaveALimit
	KeysHaveTheirEntries
)
