"""Words that stand for one another in questions about programs, their output and their manuals. Pure.

From common usage, by subject. Every word of a line stands for the others of that line, at a low weight; a word may be on several
lines. Stemming reaches the other forms of a word, so one form of each is enough.
"""

from __future__ import annotations

_MOST = 8
"""Words that stand for one: each is looked up in the index."""
_GROUPS = """
error fail failure exception fatal broken wrong problem issue
crash abort panic segfault kill die core
warning caution deprecated obsolete notice
bug defect flaw fault
unexpected surprising unwanted
invalid illegal malformed corrupt bad unrecognized unknown
valid legal correct proper
cause reason because due
fix repair solve resolve correct patch
diagnose debug troubleshoot investigate inspect
trace stack backtrace traceback
symptom sign indication
recover restore rescue salvage
tolerate accept permit allow ignore
denied forbidden refused rejected unauthorized permission disallow
prohibit forbid ban deny disallow block
allow permit grant enable
unable cannot failed impossible
missing absent lacks nonexistent lost unavailable
unknown undefined unrecognised unrecognized unspecified undocumented
exists present available
slow latency delay lag sluggish duration
fast quick speed rapid performance
speed rate velocity bandwidth throughput tempo pace
throttle limit restrict cap bandwidth
hang stuck deadlock blocked freeze unresponsive
wait block pause sleep await
timeout timed deadline expired exceeded
stop halt terminate exit quit end abort cease
start launch boot begin startup initiate
restart reboot reload respawn relaunch
resume continue proceed partial
interrupt cancel abort signal
finish complete done end terminate
schedule cron timer periodic
frequent often repeatedly interval
delete remove erase purge drop unlink uninstall discard
clear reset flush wipe empty
create add make generate insert build construct
make build compile
change modify edit update alter amend
replace substitute swap exchange
swap exchange interchange
upgrade bump update newer
downgrade revert rollback older
undo revert rollback restore
install setup deploy provision
configure configuration setting option preference
option flag argument parameter switch
argument parameter operand input
default fallback standard builtin
automatic automatically implicit auto
manual explicit hand
mandatory required necessary
optional additional extra
choose select pick
decide determine
maximum max cap threshold upper limit
minimum min lower least
limit maximum cap quota bound restrict
exceed over above beyond
below under less beneath
number count amount total quantity
sum total aggregate add
average mean median
increase grow raise expand
decrease shrink reduce lower less
size length bytes large width capacity
big large huge great
small tiny little short
long length lengthy
wide width column
high tall height top
deep depth level nested descend recursion
level depth tier
hash dictionary map associative
empty blank null none void
blank space whitespace
full complete entire whole
half part partial fraction
each every per
first initial leading beginning
last final trailing latest
next following subsequent after
previous prior former earlier before
new newer recent latest modern
old older legacy former ancient
current present now active
same equal identical alike
different differ distinct unlike mismatch
compare diff difference match checksum
match equal correspond fit
similar like alike near resemble
duplicate repeated already exists unique twice
unique distinct single
repeat loop iterate again
retry attempt again reattempt
once single one
several many multiple
few couple
exclude ignore skip omit except leave
include contain embed
skip omit bypass jump
keep retain preserve save hold
drop discard lose remove
hide hidden conceal invisible suppress
show display print list view output visible
list enumerate listing show
print output write display emit
quiet silent suppress mute
verbose detailed chatty
loud volume loudness gain
sort order arrange rank
order sequence sorting
reverse invert opposite backward
group cluster batch bundle
split divide separate break tokenize
join merge combine concatenate unite append
append add attach extend
prepend prefix before
insert add put place
cut trim truncate strip remove
strip remove trim drop
shorten abbreviate truncate
extension suffix ending
prefix beginning leading
extract unpack decompress pull
compress zip gzip archive pack
archive tar backup zip bundle
find search locate lookup discover
search query find grep
filter select match restrict
scan examine inspect probe
check verify validate test ensure
count number tally
measure metric gauge
calculate compute evaluate
guess estimate predict
convert transform translate change
translate map convert
encode escape serialize
decode parse unescape deserialize
serialize dump marshal pickle serialization
parse read interpret analyze
analyse analyze analysis inspect examine
copy duplicate replicate clone mirror
move rename transfer relocate
rename move mv
send transmit post deliver submit
receive get accept incoming
read load open fetch
write save store output
save write store record
load read import open
import include require load
export output save dump
download fetch pull retrieve get
upload push send publish
open access
close shut shutdown
lock mutex exclusive
unlock release
folder directory dir path
file filename document
path location place pathname
location place path position
link url address href hyperlink
symlink symbolic link
link symlink shortcut
document page manual documentation
documentation docs manual reference help
help usage assist
example sample demo
description summary explanation
temporary temp tmp scratch
backup snapshot dump archive copy
disk storage space filesystem volume
mount attach volume
partition volume disk
inode files
permission mode chmod access right
owner user uid ownership
user account owner username
group gid
password credential secret passphrase
secret token key credential
login logon signin authentication session
logout signout
authentication auth login identity
authorize permission grant access
encrypt encryption tls ssl cipher crypt
secure security safe protected
random entropy arbitrary
secure cryptographic
certificate cert x509
hash digest checksum
array list vector sequence
sign signature gpg signed
vulnerability cve advisory insecure security exploit
attack exploit malicious
injection inject
antivirus malware virus
firewall iptables rule
memory ram heap oom
memory leak
processor cpu cores
machine host computer server node system
computer machine pc
server host backend
client browser agent
node host member
network connection host route socket interface
connect connection reach reachable unreachable
unreachable route down
disconnect lost closed drop
online up connected
offline down disconnected
address ip host
hostname host name dns
resolve lookup dns
port listen listening bind
listen accept bind
gateway router proxy
router wireless access
wireless wifi wlan
protocol tcp udp
packet frame datagram
traffic bandwidth packets
request call query
response reply answer
header field
proxy forward tunnel
forward redirect relay
email mail smtp message
message text notice
notify alert alarm notification
alert alarm warning notify
subscribe listen watch
monitor watch observe track
track follow trace
health status liveness
status state condition code
code number status
process program task job pid
program application executable binary command
application app program
command program instruction
job task work
thread concurrent parallel
parallel concurrent simultaneous jobs threads multiple
background daemon service
service daemon server
child subprocess spawn fork
parent ancestor above
spawn fork launch start
execute run invoke exec call
run execute exec launch
function method routine procedure
class type object
object instance
variable var value
environment env variable
constant literal fixed
type kind class
kind type sort
string text str
text string characters
character letter char
row line record
record entry row
entry item record
field column attribute
attribute property field
key identifier name
identifier id name
name label title called
label tag name
title heading name
tag label version
version release tag revision
revision version commit
release version publish
commit changeset revision
branch head
author committer contributor maintainer
rebase replay
stash shelve
remote upstream origin
stale outdated old expired
outdated stale old obsolete
fresh new recent
clone copy checkout
diff difference change patch
conflict collision clash
ancestor parent base
history log past
log record journal logging
logfile log
rotate rollover
event incident occurrence
database db sql schema
query statement sql
table relation
transaction commit
replica replication standby
index key
primary main master
main primary principal
secondary replica backup
cache buffer
queue backlog
cluster nodes
container docker pod image
picture image photo frame video
video movie film picture
subtitle caption text
caption subtitle title
audio sound music
pitch frequency tone
volume loudness level
track channel stream
crop cut trim
border edge margin
black dark
brightness luminance contrast
color colour
font typeface
draw paint render overlay
render draw display
scale zoom resize
rotate turn
blur smooth
noise grain
website site page web
button control
click press select
menu list dropdown
window dialog
terminal console tty shell
screen display terminal
cursor pointer
keyboard keys
input entry stdin
output result stdout
pipe pipeline stream
result outcome output
test tests spec suite assertion
assertion assert check expect
expected wanted
actual found got
pass success succeed ok
success ok succeeded passed
flaky intermittent unstable
coverage covered
mock stub fake
lint style
syntax grammar
spelling typo misspelled mistyped
mistake error typo
parenthesis bracket
quote quotation
escape backslash
comma separator delimiter
pattern regex glob expression
regex regexp pattern regular
wildcard glob pattern
case upper lower capital
insensitive nocase ignore
sensitive exact
literal verbatim raw
newline linefeed eol line
ending eol newline
encoding charset utf
unicode utf
format layout style
template pattern
module library package
package library bundle
dependency requires required package
plugin extension addon
compiler gcc clang
link linker
loop iterate cycle
branch conditional
exception error raise throw
catch handle except
handle process treat
handler callback hook
return value result
value setting number
true yes enabled
false off disabled
enable enabled activate turn
disable disabled deactivate off turn
toggle switch
time date timestamp clock
date day time
clock time ntp
drift skew offset
timezone tz utc
duration elapsed time took
age old
second sec
minute min
hour hr
day daily
week weekly
month monthly
year annual
yesterday ago
newer recent modified
modified changed mtime
created birth ctime
accessed atime
expire expired expiration ttl
lifetime ttl age
overheat temperature thermal heat hot
fan cooling
power voltage battery
hibernate sleep suspend
suspend sleep pause
boot startup bootup
shutdown poweroff halt
driver module
device hardware
usb device
printer print
firmware bios
kernel os
vendor manufacturer
model version type
serial number
license licence copyright
cost price expense
bill invoice
order purchase
customer client
payment pay checkout
person people user
robot bot automated
book manual
word term
sentence phrase
language locale
translate localization
question query
idea suggestion
request ask
want need
need require
use employ
useful helpful
prevent avoid stop
protect guard
danger risk hazard
important critical severe
critical severe fatal
severity level
priority importance
urgent critical
simple easy
difficult hard
tidy clean normalize
normalize standard canonical
standard normal
normal usual ordinary
special particular
common usual frequent
rare seldom
atomic atomically
atomic transaction
throw discard
position offset
edge boundary border
center middle
left right
inside within
outside external
internal inner
external outer
global everywhere
public open
private hidden
static constant
dynamic runtime
runtime execution
interpreter python
script program
notebook jupyter
shell bash
editor vim
ide editor
completion autocomplete complete suggestion
suggestion hint recommendation
hint tip suggestion
tip advice hint
feature functionality
support supported
supported compatible
compatible compatibility
migrate migration
branch fork
fold collapse squash
squash fold combine
expand unfold
indent indentation
wrap fold
align justify
pad fill
estimate approximate
exact precise
round rounding
zero null
negative minus
positive plus
plus add
minus subtract
multiply times
percent percentage
ratio proportion
probability chance
planner optimizer
plan strategy
cost estimate
sequential ordered
worker thread
leader master
follower replica
poll check
poll wait
attachment file
verify signature
trust certificate
expose publish
announce publish
release announce
kill terminate
zombie defunct
orphan parent
allocate malloc
free release
available free
usage used
consumption usage
load usage
busy load
idle inactive
active running
pending waiting
ready available
unready unavailable
unavailable down
evicted removed
scheduled assigned
replica copy
scale replicas
rollout deployment
ingress gateway
configmap configuration
namespace project
repository repo project
issue ticket
review approve
approve accept
reject deny
comment note
assignee owner
""".strip().splitlines()


def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for line in _GROUPS:
        group = line.split()
        for word in group:
            table.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    return {word: tuple(others)[:_MOST] for word, others in table.items()}


KIN = _table()
"""Every word with those that stand for it, the nearest first."""
