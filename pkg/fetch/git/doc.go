// Package git gets folders out of git repositories over https and ssh.
//
// It speaks the smart protocol (version 0, which every server knows) in two exchanges: the
// advertisement of refs, which alone answers Resolve, and one pack, which has the wanted commit
// without its history wherever the server allows that. Both go through outbound.Network.
//
// By ssh they are one connection that runs git-upload-pack and nothing else. The client is
// golang.org/x/crypto/ssh on a connection of the Network, so that addresses are checked, bytes
// counted and deadlines kept; no ssh program, agent or configuration takes part. A private key and
// known_hosts are required, and the host key is checked before anything is sent. Remotes are held
// to a small grammar, since the server's shell sees the path.
//
// Of go-git only the formats are used (pkt-lines, pack entries, deltas); its transports, among them
// the ones for local paths and for running ssh, are not even linked, and there is no repository, no
// index, no checkout: the tree of one commit is walked and the files below the reference's path are
// written out.
//
// The server is not trusted. The advertisement is read as a stream, the pack is counted on the wire
// and kept in a file that has no name any more, deltas are resolved under a memory budget and all
// inflating under a work budget. Object names are computed, never believed: what is written out is
// what the commit hash says, or nothing.
//
// Refused, with the path: links, submodules, names that git itself would not check out (.git in its
// spellings), pointers to large-file storage. Only what lies below the reference's path counts.
package git
