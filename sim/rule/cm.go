package rule

// Rules of the connection manager, in the kernel and in librdmacm.
const (
	RequestsWithoutListenerAreRejected Rule = iota + 448
	StaleConnectionsAreRefused
	RepeatedRequestsAreAnsweredByMRA
	RepeatedRepliesAreAnsweredByRTU
	MRAExtendsTheTimeout
	DREPWaitsForTheProgram
	RequestsAreSentAgain
	ListenersHaveTheirAddress
	WildcardsListenEverywhere
	PortSpacesAreApart
	LowPortsArePrivileged
	BoundPortsAreTaken
	RequestDataArrives
	DepthsAreExchanged
	StartingPSNIsThePeers
	BacklogIsALimit
	MigrationTakesEventsAlong
	TOSCountsBeforeTheRoute
	DatagramServicesHaveAKey
	EventsAreAwaitedByDestroy
	RefusedConnectionsEndTheirQP
	TimewaitHasItsTime
	SendOnlyMembersAreNotAttached
	AddressErrorsWaitForTheTimeout
	EventsMakeChannelsReadable
	LocalPortsHaveTheirRange
	BindNeedsAnOwnAddress
	ListenChecksReusedPorts
	ResolutionFillsTheSource
	FlowLabelIsOfThePorts
	EstablishmentIsReported
	SecondDisconnectSucceeds
	ClosedChannelsEndTheirIDs
	DatagramServicesAreRefused
)
