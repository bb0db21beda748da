package wire

import (
	"fmt"
	"strings"
	"testing"
)

// TestParsePlace: what a flag may say, and the sentences about what it may not.
func TestParsePlace(t *testing.T) {
	for s, want := range map[string]string{
		"udp:192.0.2.1":                               "udp:192.0.2.1 192.0.2.1",
		"dgram:5001-5002@10.77.0.2":                   "dgram:127.0.0.1:5001-127.0.0.1:5002 10.77.0.2",
		"dgram:192.0.2.1:5001-192.0.2.2:5001@fd77::2": "dgram:192.0.2.1:5001-192.0.2.2:5001 fd77::2",
		"tap:tap0@10.77.0.2":                          "tap:tap0 10.77.0.2",
		"tap:tap0":                                    "the adapter needs an IP address on this Ethernet, behind an @, such as tap:tap0@192.0.2.2",
		"tap:tap0@10.77.0.2/24":                       `"10.77.0.2/24" is no IP address`,
		"tap:tap0@224.0.0.1":                          "give one that no other host of this Ethernet has",
		"tap:@10.77.0.2":                              "the name of a TAP interface",
		"tap:longer-than-any-name@10.77.0.2":          "the name of a TAP interface",
		"dgram:5001@10.77.0.2":                        "both ends of the UDP datagrams are needed",
		"dgram:5001-5001@10.77.0.2":                   "both ends are the same",
		"dgram:5001-70000@10.77.0.2":                  `"70000" is no IPv4 address with a port`,
		"dgram:5001-[::1]:5002@10.77.0.2":             `"[::1]:5002" is no IPv4 address with a port`,
		"dgram:5001-239.0.0.1:5002@10.77.0.2":         "no group",
		"dgram:5001-0.0.0.0:5002@10.77.0.2":           "the address of one other end",
		"192.0.2.1":                                   "udp:ADDRESS is needed",
		"udp:fe80::1%eth0":                            "link-local",
	} {
		p, err := ParsePlace(s)
		got := fmt.Sprint(err)
		if err == nil {
			got = p.String() + " " + p.Address.String()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
	for s, want := range map[string]string{
		"dgram:5001-5002": "<nil>", "tap:tap0": "<nil>", "udp:192.0.2.1": "a guest's frames need Ethernet", "/tmp/socket": "dgram:LOCAL-REMOTE, such as",
		"tap:tap0@10.77.0.2": "leave @ and what follows out",
	} {
		if _, err := ParseEthernet(s); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", s, err, want)
		}
	}
}
