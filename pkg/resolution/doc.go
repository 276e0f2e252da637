// Package resolution says what an AddonInstallation asks for, from the installation, the catalogue and a description of
// its cluster: which version, which values, which source, and what all of that comes to.
package resolution
