package hca

// LinkLayer is what a port speaks.
type LinkLayer uint8

// Link layers, with the words of profiles in LinkLayerWords.
const (
	Ethernet LinkLayer = iota
	InfiniBand
)

// LinkLayerWords are the names of the link layers, by value.
var LinkLayerWords = []string{"ethernet", "infiniband"}

// String returns the text form.
func (l LinkLayer) String() string {
	if int(l) < len(LinkLayerWords) {
		return LinkLayerWords[l]
	}
	return "unknown"
}

// LinkLayers is a set: which a device has.
type LinkLayers uint8

// Sets, with the words of profiles in LinkLayersWords.
const (
	EthernetOnly LinkLayers = iota
	InfiniBandOnly
	EitherLinkLayer
)

// LinkLayersWords are the names of the sets, by value.
var LinkLayersWords = []string{"ethernet", "infiniband", "either"}

// Has says whether the set has a link layer.
func (s LinkLayers) Has(l LinkLayer) bool { return s == EitherLinkLayer || uint8(s) == uint8(l) }
