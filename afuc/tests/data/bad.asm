; Fifteen mistakes. The text of the errors is a snapshot.
[016ee001]
[#jumptbl]
mov $02, 0x12345
cread $02, [$00 + 0x1fff]
setbit $02, $03, b40
mov $02, 0x1 << 40
add $41, $02, 0x1
twice:
twice:
(xmov1)mov $02, 0x1
(peek)msb $02, $03
bic $02, $02, $03
add $02, $03
cwrite $02, [$00 + @IB9_BASE]
cwrite $02, [$03 + 0x001], 0x4
jump #nowhere
frobnicate $02
mov $02, 0x1 ^ 2
waitin
mov $01, $data
jumptbl:
.jumptbl
